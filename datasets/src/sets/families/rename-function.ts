import { exec, read, write } from '../../steps.js';
import { json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const NAMES = [
  ['fetch', 'fetch_rows'],
  ['load', 'load_orders'],
  ['scan', 'scan_shelf'],
] as const;

/** A function renamed in all its files. Dominant mistake: the word is replaced everywhere, in other names and in texts too. */
export const renameFunction: SetFamily = {
  name: 'rename-function',
  domain: 'software',
  level: 'base',
  make(random) {
    const [old, fresh] = random.pick(NAMES);
    const step = 2 + random.below(7);
    const sources = (name: string, text: string = old, other: string = old): Record<string, string[]> => ({
      'store.py': [
        `"""Rows of the store. ${text} reads them."""`,
        '',
        '',
        `def ${name}(path):`,
        '    with open(path) as file:',
        '        return [line.strip() for line in file if line.strip()]',
        '',
        '',
        `def pre${other}(path):`,
        `    return ${name}(path)[:${step}]`,
        '',
        '',
        `def ${other}_one(path, at):`,
        `    rows = ${name}(path)`,
        `    return rows[at]  # ${text} reads all of them`,
      ],
      'report.py': [
        'import store',
        `from store import pre${other}`,
        '',
        '',
        'def report(path):',
        `    rows = store.${name}(path)`,
        `    first = pre${other}(path)`,
        `    return "${text}: %d rows, %d first" % (len(rows), len(first))`,
      ],
      'main.py': [
        'from report import report',
        `from store import ${name}, ${other}_one`,
        '',
        `handlers = {"${text}": ${name}}`,
        'print(report("rows.txt"))',
        `print(handlers["${text}"]("rows.txt")[-1], ${other}_one("rows.txt", 0))`,
      ],
    });
    const before = sources(old);
    const right = sources(fresh);
    const rows = Array.from({ length: 9 + random.below(6) }, (_, i) => `row-${i + 1}`);
    const paths = Object.keys(before);
    // Lines in which the name itself changes.
    const changed = (path: string): number =>
      right[path]!.filter((line, i) => line !== before[path]![i]).length;
    const counts = Object.fromEntries(paths.map((path) => [path, changed(path)]));
    const plan = (after: Record<string, string[]>, only = paths): Plan => ({
      steps: [
        ...paths.map(read),
        ...only.map((path) => write(path, lines(...after[path]!))),
        write('renamed.json', json(counts)),
      ],
    });
    return {
      files: {
        ...Object.fromEntries(paths.map((path) => [path, lines(...before[path]!)])),
        'rows.txt': lines(...rows),
      },
      query:
        `Rename the function ${old} of store.py to ${fresh} in all Python files here: its definition, imports and every use of it as a function. Other functions (pre${old}, ${old}_one), texts in quotes, docstrings ` +
        'and comments stay as they are, and so does all else; python3 main.py must print what it printed before. Write renamed.json: an object from each Python file to the number of its lines that you changed.',
      expected:
        'The agent renames the identifier in three files without touching other names, texts and comments.',
      truth: { before, right, counts },
      check: `
found = {path: ws.lines(path) or [] for path in TRUTH["right"]}
changed = any(found[path] != rows for path, rows in TRUTH["before"].items())
counts = ws.json("renamed.json")
pairs = [(old, new, found[path][i] if i < len(found[path]) else None) for path, rows in TRUTH["right"].items() for i, (old, new) in enumerate(zip(TRUTH["before"][path], rows))]
scores = {path[:-3]: float(found[path] == rows) for path, rows in TRUTH["right"].items()}
scores["uses"] = share(now == new for old, new, now in pairs if old != new)
scores["rest_kept"] = float(changed and all(now == old for old, new, now in pairs if old == new))
scores["counts"] = share(close(at(counts, path), count) for path, count in TRUTH["counts"].items())
return scores`,
      reference: { steps: [...plan(right).steps, exec('python3 -B main.py')] },
      wrong: {
        'every-word': {
          why: 'the letters are replaced wherever they occur',
          steps: [
            ...paths.map(read),
            exec(`sed -i 's/${old}/${fresh}/g' *.py`),
            exec('python3 -B main.py'),
            write('renamed.json', json(counts)),
          ],
        },
        'texts-too': { why: 'texts and comments are changed as well', ...plan(sources(fresh, fresh)) },
        'one-file': {
          why: 'only the definition and the uses in its own file are renamed',
          ...plan(right, ['store.py']),
        },
      },
    };
  },
};
