import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** Numbered lines into order; never sorted already. Dominant flaw: copied as they stand. */
export const order: Family = {
  name: 'order',
  domain: 'planning',
  make(draw) {
    const [from, to] = [draw.file('txt'), draw.file('md')];
    const want = Array.from(
      { length: draw.pick([3, 3, 4]) },
      (_, i) => `${i + 1} ${draw.value('verb')} ${draw.value('item')}`,
    );
    let mixed = want;
    while (mixed.every((line, i) => line === want[i])) mixed = draw.shuffle(want);
    return {
      files: { [from]: lines(...mixed) },
      query: draw.pick([
        `Write the steps of ${from} in order to ${to}.`,
        `Sort the plan in ${from} by number and save it as ${to}.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'steps', weight: 0.3, kind: 'recall', path: to, want },
        { name: 'order', weight: 0.6, kind: 'places', path: to, want },
      ],
      oracle: [read(from), write(to, lines(...want))],
      flaws: [[read(from), write(to, lines(...mixed))], [read(from), write(to, want[0]!)], [read(from)]],
    };
  },
};
