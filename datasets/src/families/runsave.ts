import { exec, read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** A script's output is kept in a file. That it ran shows in `.ran`, which it leaves. Dominant flaw: run, save nothing. */
export const runsave: Family = {
  name: 'runsave',
  domain: 'systems',
  make(draw) {
    const [script, to] = [draw.file('sh'), draw.file('txt')];
    const want = Array.from({ length: 2 }, () =>
      draw.chance(0.5)
        ? `${draw.value('key')} ${draw.value('number')}`
        : `${draw.value('item')} ${draw.value('color')}`,
    );
    const source = lines(...want.map((line) => `echo ${line}`), 'touch .ran');
    const run = exec(`sh ${script}`);
    return {
      files: { [script]: source },
      query: draw.pick([
        `Run sh ${script} and save its output in ${to}.`,
        `Execute ${script} with sh; store what it prints in ${to}.`,
        `Save the output of sh ${script} to ${to}.`,
      ]),
      rules: [
        { name: 'ran', weight: 0.15, kind: 'exists', path: '.ran' },
        { name: 'exists', weight: 0.15, kind: 'exists', path: to },
        { name: 'content', weight: 0.7, kind: 'recall', path: to, want, most: want.length },
      ],
      oracle: draw.chance(0.6) ? [run, write(to, lines(...want))] : [exec(`sh ${script} > ${to}`)],
      flaws: [[run], [run, write(to, want[0]!)], [read(script), write(to, source)]],
    };
  },
};
