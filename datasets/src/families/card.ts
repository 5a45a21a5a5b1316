import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** Heading and meaning of one term of three. Dominant flaw: the meaning without its heading. */
export const card: Family = {
  name: 'card',
  domain: 'content',
  make(draw) {
    const [from, to] = [draw.file('txt'), draw.file('md')];
    const entries = draw
      .values('term', 3)
      .map((term) => ({ term, meaning: draw.values('meaning', 3).join(' ') }));
    const { term, meaning } = draw.pick(entries);
    const heading = `# ${term}`;
    return {
      files: { [from]: lines(...entries.map((entry) => `${entry.term}: ${entry.meaning}`)) },
      query: draw.pick([
        `Make a card ${to} for ${term} from ${from}: heading, then the meaning.`,
        `Write ${to}: heading ${term} and its meaning from ${from}.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'heading', weight: 0.3, kind: 'has', path: to, line: heading },
        { name: 'meaning', weight: 0.4, kind: 'has', path: to, line: meaning },
        { name: 'shape', weight: 0.2, kind: 'equal', path: to, want: [heading, meaning] },
      ],
      oracle: [read(from), write(to, lines(heading, meaning))],
      flaws: [[read(from), write(to, meaning)], [read(from), write(to, heading)], [read(from)]],
    };
  },
};
