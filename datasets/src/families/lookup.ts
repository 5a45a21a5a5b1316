import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** A column by id in a csv. Dominant flaw: the whole row. */
export const lookup: Family = {
  name: 'lookup',
  domain: 'analysis',
  make(draw) {
    const [from, to] = [draw.file('csv'), draw.file('txt')];
    const rows = Array.from({ length: 2 + draw.below(2) }, () => ({
      id: draw.value('number'),
      city: draw.value('city'),
      item: draw.value('item'),
    }));
    const row = draw.pick(rows);
    const column = draw.pick(['city', 'item'] as const);
    const want = `${row.id} ${row[column]}`;
    const csv = ({ id, city, item }: typeof row): string => `${id},${city},${item}`;
    return {
      files: { [from]: lines('id,city,item', ...rows.map(csv)) },
      query: draw.pick([
        `Find the ${column} of id ${row.id} in ${from} and write id and ${column} to ${to}.`,
        `Write to ${to} the line id ${column} for id ${row.id} from ${from}.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'answer', weight: 0.3, kind: 'words', path: to, words: [row.id, row[column]], single: 1 },
        { name: 'only', weight: 0.6, kind: 'equal', path: to, want: [want] },
      ],
      oracle: [read(from), write(to, want)],
      flaws: [[read(from), write(to, csv(row))], [read(from)], [write(to, 'unknown')]],
    };
  },
};
