/** One panel: several lines over the same steps. */
export interface Panel {
  title: string;
  lines: { name: string; colour: string; values: readonly (number | null)[] }[];
}

const WIDTH = 520;
const HEIGHT = 240;
const LEFT = 56;
const BOTTOM = 28;
const TOP = 26;

const short = (value: number): string =>
  value === 0
    ? '0'
    : Math.abs(value) < 0.01 || Math.abs(value) >= 1e4
      ? value.toExponential(1)
      : String(Number(value.toPrecision(3)));

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** A still picture of small curves for a README: panels in two columns, one legend. No scripts, no fonts to load. */
export function lineChart(panels: readonly Panel[]): string {
  const legend = new Map(panels.flatMap(({ lines }) => lines.map(({ name, colour }) => [name, colour])));
  const rows = Math.ceil(panels.length / 2);
  const height = rows * HEIGHT + 28;
  const body = panels
    .map(
      (panel, i) =>
        `<g transform="translate(${(i % 2) * WIDTH},${Math.floor(i / 2) * HEIGHT})">${drawPanel(panel)}</g>`,
    )
    .join('\n');
  const names = [...legend]
    .map(
      ([name, colour], i) =>
        `<g transform="translate(${LEFT + i * 170},${height - 12})"><rect width="18" height="3" y="-5" fill="${colour}"/><text x="24">${escape(name)}</text></g>`,
    )
    .join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH * 2} ${height}" font-family="sans-serif" font-size="11" fill="#333">
<rect width="100%" height="100%" fill="#fff"/>
${body}
${names}
</svg>
`;
}

function drawPanel({ title, lines }: Panel): string {
  const values = lines.flatMap((line) => line.values.filter((value) => value !== null));
  const steps = Math.max(2, ...lines.map((line) => line.values.length));
  const low = Math.min(...values, 0);
  const high = Math.max(...values, low + 1e-9);
  const x = (step: number): number => LEFT + (step / (steps - 1)) * (WIDTH - LEFT - 16);
  const y = (value: number): number =>
    HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  const grid = [0, 0.25, 0.5, 0.75, 1]
    .map((at) => {
      const value = low + at * (high - low);
      return `<line x1="${LEFT}" x2="${WIDTH - 16}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="#ddd"/><text x="${LEFT - 6}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${short(value)}</text>`;
    })
    .join('');
  const axis = `<text x="${LEFT}" y="${HEIGHT - 10}">1</text><text x="${WIDTH - 16}" y="${HEIGHT - 10}" text-anchor="end">${steps}</text><text x="${WIDTH / 2}" y="${HEIGHT - 10}" text-anchor="middle">step</text>`;
  const drawn = lines.map((line) => {
    let pen = 'M';
    const path = line.values
      .map((value, step) => {
        if (value === null) {
          pen = 'M'; // a step without a value is a gap, not a zero
          return '';
        }
        const point = `${pen}${x(step).toFixed(1)},${y(value).toFixed(1)}`;
        pen = 'L';
        return point;
      })
      .join('');
    return `<path d="${path}" fill="none" stroke="${line.colour}" stroke-width="1.3" opacity="0.8"/>`;
  });
  return `<text x="${LEFT}" y="16" font-weight="bold">${escape(title)}</text>${grid}${axis}${drawn.join('')}`;
}
