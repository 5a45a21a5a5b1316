import { edit, read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** One key gets a value, the rest stays. Dominant flaw: the file is overwritten with the one line. */
export const config: Family = {
  name: 'config',
  domain: 'systems',
  make(draw) {
    const path = draw.file('conf');
    const keys = draw.values('key', 4);
    const before = keys.map((key) => `${key}=${draw.value(draw.chance(0.5) ? 'number' : 'color')}`);
    const at = draw.below(keys.length);
    const [key, value] = [keys[at]!, draw.value(draw.chance(0.6) ? 'number' : 'city')];
    const [oldLine, newLine] = [before[at]!, `${key}=${value}`];
    return {
      files: { [path]: lines(...before) },
      query: draw.pick([
        `In ${path} set ${key} to ${value}.`,
        `Change ${key} in ${path} to ${value} and keep the rest.`,
        `Fix ${path}: ${key} must be ${value}.`,
      ]),
      rules: [
        { name: 'value', weight: 0.6, kind: 'has', path, line: newLine, without: oldLine },
        { name: 'rest', weight: 0.4, kind: 'equal', path, want: before.with(at, newLine) },
      ],
      oracle: [read(path), edit(path, oldLine, newLine)],
      flaws: [[read(path), write(path, newLine)], [read(path)]],
    };
  },
};
