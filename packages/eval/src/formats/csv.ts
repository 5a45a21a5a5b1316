import { TreewardError } from '@treeward/base';

/**
 * Rows of a CSV (RFC 4180: quoted cells may hold commas, doubled quotes and line ends) as objects by the header's names.
 * @throws TreewardError TASK_E_CSV naming the file and line: an open quote, or a row whose number of cells differs
 */
export function parseCsv(text: string, file: string): Record<string, string>[] {
  const rows: string[][] = [];
  const starts: number[] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  let line = 1;
  let rowLine = 1;
  const endCell = (): void => {
    row.push(cell);
    cell = '';
  };
  const endRow = (): void => {
    endCell();
    if (row.length > 1 || row[0] !== '') {
      rows.push(row);
      starts.push(rowLine);
    }
    row = [];
    rowLine = line;
  };
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === '\n') line++;
    if (quoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += '"';
        at++;
      } else quoted = false;
    } else if (char === '"' && cell === '') quoted = true;
    else if (char === ',') endCell();
    else if (char === '\n') endRow();
    else cell += char;
  }
  const fail = (at: number, what: string): TreewardError =>
    new TreewardError('TASK_E_CSV', `${file}:${at}: ${what}`, { data: { file, line: at } });
  if (quoted) throw fail(rowLine, 'a quote is not closed');
  if (cell !== '' || row.length > 0) endRow();
  const [header, ...body] = rows;
  if (!header) return [];
  return body.map((cells, index) => {
    if (cells.length !== header.length) {
      throw fail(starts[index + 1]!, `${cells.length} cells under ${header.length} headings`);
    }
    return Object.fromEntries(header.map((name, at) => [name.trim(), cells[at]!]));
  });
}
