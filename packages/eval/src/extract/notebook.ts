import { z } from 'zod';
import { readJson } from '@treeward/base';

const text = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (Array.isArray(value) ? value.join('') : value));
const output = z.looseObject({
  text: text.optional(),
  data: z.record(z.string(), z.unknown()).optional(),
  ename: z.string().optional(),
  evalue: z.string().optional(),
});
const notebook = z.looseObject({
  cells: z.array(z.looseObject({ cell_type: z.string(), source: text, outputs: z.array(output).optional() })),
});

/** Cells in order with what they printed; pictures are named, not shown. */
export async function notebookText(file: string): Promise<string> {
  const { cells } = notebook.parse(readJson<unknown>(file));
  return cells
    .map(({ cell_type: type, source, outputs }) => {
      const printed = (outputs ?? []).map((each) => {
        if (each.text !== undefined) return each.text;
        if (each.ename !== undefined) return `${each.ename}: ${each.evalue ?? ''}`;
        const plain = text.safeParse(each.data?.['text/plain']);
        return plain.success ? plain.data : `<${Object.keys(each.data ?? {}).join(', ')}>`;
      });
      return [`## ${type} cell`, source, ...(printed.length > 0 ? ['### output', ...printed] : [])].join(
        '\n',
      );
    })
    .join('\n\n');
}
