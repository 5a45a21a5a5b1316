import { readFileSync } from 'node:fs';
import { read, utils } from '@e965/xlsx';

/** Every sheet as CSV under its name, values as the workbook shows them; a formula without a stored value as `=…`. */
export async function workbookText(file: string): Promise<string> {
  const book = read(readFileSync(file), { type: 'buffer', cellFormula: true });
  return book.SheetNames.map((name) => {
    const sheet = book.Sheets[name]!;
    for (const [address, cell] of Object.entries(sheet)) {
      const { f, v } = cell as { f?: string; v?: unknown };
      if (!address.startsWith('!') && f !== undefined && v === undefined)
        Object.assign(cell as object, { t: 's', v: `=${f}` });
    }
    return `## sheet ${name}\n${utils.sheet_to_csv(sheet)}`;
  }).join('\n\n');
}
