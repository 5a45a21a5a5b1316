/** Rows as aligned plain text: the first column to the left, the others to the right. */
export function textTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  left = 1,
): string {
  const widths = headings.map((heading, at) =>
    Math.max(heading.length, ...rows.map((row) => (row[at] ?? '').length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at < left ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
      .trimEnd();
  return [line(headings), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

export const percent = (value: number | null | undefined, digits = 1): string =>
  value == null || Number.isNaN(value) ? '–' : (value * 100).toFixed(digits);

export const number = (value: number | null | undefined, digits = 3): string =>
  value == null || Number.isNaN(value) ? '–' : value.toFixed(digits);
