import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** ACTION lines of a mixed list become a dash list. Dominant flaw: every line is taken. */
export const actions: Family = {
  name: 'actions',
  domain: 'productivity',
  make(draw) {
    const [from, to] = [draw.file('txt'), draw.file('md')];
    const row = (kind: string) => ({
      kind,
      text: `${draw.value('name')} ${draw.value('verb')} ${draw.value('item')}`,
    });
    const notes = Array.from({ length: 1 + draw.below(2) }, () => row('NOTE'));
    const rows = draw.shuffle([row('ACTION'), row('ACTION'), ...notes]);
    const dashes = (kept: typeof rows): string[] => kept.map(({ text }) => `- ${text}`);
    const want = dashes(rows.filter(({ kind }) => kind === 'ACTION'));
    return {
      files: { [from]: lines(...rows.map(({ kind, text }) => `${kind} ${text}`)) },
      query: draw.pick([
        `Read ${from} and write the action items to ${to} as a dash list.`,
        `Put every ACTION line of ${from} in ${to}, one dash item per line.`,
        `Make ${to} from ${from}: only the actions, as a dash list.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'recall', weight: 0.3, kind: 'recall', path: to, want },
        { name: 'clean', weight: 0.6, kind: 'equal', path: to, want },
      ],
      oracle: [read(from), write(to, lines(...want))],
      flaws: [
        [read(from), write(to, lines(...dashes(rows)))],
        [read(from), write(to, want[0]!)],
        [read(from)],
      ],
    };
  },
};
