import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** A question file and a facts file. Dominant flaw: the bare city. */
export const kb: Family = {
  name: 'kb',
  domain: 'planning',
  make(draw) {
    const [question, facts, to] = [draw.file('txt'), draw.file('txt'), draw.file('md')];
    const rows = Array.from({ length: 2 + draw.below(2) }, () => ({
      name: draw.value('name'),
      city: draw.value('city'),
    }));
    const { name, city } = draw.pick(rows);
    const sentences = rows.map((row) => `${row.name} in ${row.city}`);
    const want = `${name} in ${city}`;
    return {
      files: { [question]: `Where is ${name}?`, [facts]: lines(...sentences) },
      query: draw.pick([
        `Answer the question in ${question} with facts from ${facts}; write ${to}.`,
        `${question} holds a question and ${facts} the facts. Put the answer in ${to}.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'who', weight: 0.2, kind: 'words', path: to, words: [name], single: 1 },
        { name: 'answer', weight: 0.7, kind: 'equal', path: to, want: [want] },
      ],
      oracle: [read(question), read(facts), write(to, want)],
      flaws: [
        [read(question), read(facts), write(to, city)],
        [read(question), read(facts)],
        [read(question), read(facts), write(to, lines(...sentences))],
      ],
    };
  },
};
