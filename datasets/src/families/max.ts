import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** The highest or lowest row. Dominant flaw: the name without its score. */
export const max: Family = {
  name: 'max',
  domain: 'analysis',
  make(draw) {
    const [from, to] = [draw.file('csv'), draw.file('txt')];
    const count = 2 + draw.below(2);
    const names = draw.values('name', count);
    const scores = draw.integers(count, 1, 10);
    const rows = names.map((name, i) => `${name} ${scores[i]}`);
    const highest = draw.chance(0.5);
    const best = scores.indexOf(highest ? Math.max(...scores) : Math.min(...scores));
    const word = highest ? 'highest' : 'lowest';
    return {
      files: { [from]: lines(...rows) },
      query: draw.pick([
        `Who has the ${word} score in ${from}? Write name and score to ${to}.`,
        `Write the line with the ${word} number of ${from} into ${to}.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'one', weight: 0.2, kind: 'single', path: to, of: rows },
        { name: 'answer', weight: 0.7, kind: 'equal', path: to, want: [rows[best]!] },
      ],
      oracle: [read(from), write(to, rows[best]!)],
      flaws: [[read(from), write(to, names[best]!)], [read(from), write(to, lines(...rows))], [read(from)]],
    };
  },
};
