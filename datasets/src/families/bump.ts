import type { Draw } from '../draw.js';
import { edit, read, write } from '../steps.js';
import { lines, type Family } from './family.js';

const version = (draw: Draw): string => [0, 0, 0].map(() => draw.below(10)).join('.');

/** A version and a changelog entry. Dominant flaw: no changelog. Version digits carry an order, so they are no slots. */
export const bump: Family = {
  name: 'bump',
  domain: 'software',
  make(draw) {
    const [manifest, log] = [draw.file('toml'), draw.file('md')];
    const from = version(draw);
    let to = version(draw);
    while (to === from) to = version(draw);
    const what = `${draw.value('verb')} ${draw.value('item')}`;
    const name = `name=${draw.value('item')}`;
    const entry = `- ${to} ${what}`;
    const set = edit(manifest, `version=${from}`, `version=${to}`);
    return {
      files: { [manifest]: lines(name, `version=${from}`) },
      query: draw.pick([
        `Release ${to}: bump version in ${manifest} and write ${log} saying ${what}.`,
        `Set version ${to} in ${manifest}; log ${to} with ${what} in ${log}.`,
      ]),
      rules: [
        { name: 'version', weight: 0.5, kind: 'equal', path: manifest, want: [name, `version=${to}`] },
        { name: 'log', weight: 0.1, kind: 'exists', path: log },
        { name: 'entry', weight: 0.4, kind: 'equal', path: log, want: [entry] },
      ],
      oracle: [read(manifest), set, write(log, entry)],
      flaws: [
        [read(manifest), set],
        [read(manifest), set, write(log, `- ${what}`)],
        [write(log, entry)],
        [read(manifest)],
      ],
    };
  },
};
