import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** A template and a file of values. Dominant flaw: only NAME is filled in. */
export const fill: Family = {
  name: 'fill',
  domain: 'content',
  make(draw) {
    const [template, values, to] = [draw.file('tpl'), draw.file('txt'), draw.file('md')];
    const [name, item, day] = [draw.value('name'), draw.value('item'), draw.value('day')];
    const form = draw.pick([
      'Dear NAME, your ITEM is ready on DAY.',
      'NAME: the ITEM arrives DAY.',
      'Hello NAME, bring the ITEM on DAY.',
    ]);
    const named = form.replace('NAME', name);
    const want = named.replace('ITEM', item).replace('DAY', day);
    return {
      files: { [template]: form, [values]: lines(`NAME ${name}`, `ITEM ${item}`, `DAY ${day}`) },
      query: draw.pick([
        `Fill the template ${template} with the values in ${values} and write ${to}.`,
        `Use ${values} to fill ${template}; save as ${to}.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'name', weight: 0.2, kind: 'words', path: to, words: [name] },
        { name: 'item', weight: 0.2, kind: 'words', path: to, words: [item] },
        { name: 'day', weight: 0.2, kind: 'words', path: to, words: [day] },
        { name: 'text', weight: 0.3, kind: 'equal', path: to, want: [want] },
      ],
      oracle: [read(template), read(values), write(to, want)],
      flaws: [
        [read(template), read(values), write(to, named)],
        [read(template), write(to, form)],
        [read(template), read(values)],
      ],
    };
  },
};
