import { read, write } from '../../steps.js';
import { csv, json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const TERMS = [
  ['client', 'customer'],
  ['client file', 'customer record'],
  ['slot', 'time window'],
  ['van', 'vehicle'],
  ['depot', 'warehouse'],
] as const;
const SENTENCES = [
  'Open the client file before you call the client.',
  'The command `client list --slot` shows every slot.',
  'A van leaves the depot at six; advance notice is given.',
  'Clients are never asked for their slot twice.',
  'Client data stays in the depot.',
  'Set `depot = "north"` for the northern depot.',
  'Slot and van are booked together.',
  'The van driver signs the client file.',
  'Depots without a van borrow one.',
];

/** Old terms replaced in three documents. Dominant mistake: terms inside code and longer words are replaced too. */
export const glossaryTerms: SetFamily = {
  name: 'glossary-terms',
  domain: 'content',
  level: 'base',
  make(random) {
    const sentences = random.shuffle(SENTENCES);
    const paths = ['docs/booking.md', 'docs/delivery.md', 'docs/storage.md'];
    const documents = paths.map((path, i) => [
      `# ${path.slice(5, 6).toUpperCase()}${path.slice(6, -3)}`,
      '',
      ...sentences.slice(3 * i, 3 * i + 3),
    ]);
    type Options = { code?: boolean; parts?: boolean; capitals?: boolean; longest?: boolean };
    const translate = (rows: readonly string[], options: Options = {}): { rows: string[]; count: number } => {
      let count = 0;
      const terms = [...TERMS].sort(([a], [b]) =>
        options.longest === false ? a.length - b.length : b.length - a.length,
      );
      const names = terms.map(([old]) => old).join('|');
      const pattern = new RegExp(options.parts ? `(${names})` : `\\b(${names})\\b`, 'gi');
      const replace = (text: string): string =>
        text.replace(pattern, (hit) => {
          count++;
          const found = terms.find(([old]) => old === hit.toLowerCase())![1];
          return options.capitals === false || hit[0] === hit[0]!.toLowerCase()
            ? found
            : found[0]!.toUpperCase() + found.slice(1);
        });
      const changed = rows.map((row) =>
        row
          .split('`')
          .map((part, i) => (i % 2 === 1 && !options.code ? part : replace(part)))
          .join('`'),
      );
      return { rows: changed, count };
    };
    const right = documents.map((rows) => translate(rows));
    const plan = (options: Options = {}): Plan => {
      const results = documents.map((rows) => translate(rows, options));
      return {
        steps: [
          ...['glossary.csv', ...paths].map(read),
          ...paths.map((path, i) => write(path, lines(...results[i]!.rows))),
          write('changes.json', json(Object.fromEntries(paths.map((path, i) => [path, results[i]!.count])))),
        ],
      };
    };
    const coded = right.flatMap(({ rows }) => rows.filter((row) => row.includes('`')));
    return {
      files: {
        'glossary.csv': csv(['old', 'new'], random.shuffle(TERMS)),
        ...Object.fromEntries(paths.map((path, i) => [path, lines(...documents[i]!)])),
      },
      query:
        'Replace the old terms of glossary.csv by the new ones in the three files of docs/, in place. Only whole words count ("Clients" and "advance" stay); where two terms fit at one place, the longer one is taken; ' +
        'if the old term begins with a capital, so does the new one; text between back-ticks stays. All else stays as it is. ' +
        'Write changes.json: an object from each path (for example "docs/booking.md") to the number of replacements in it.',
      expected:
        'The agent replaces whole-word terms outside of code, longest first and with capitals kept, and counts the replacements.',
      truth: {
        files: Object.fromEntries(paths.map((path, i) => [path, right[i]!.rows])),
        counts: Object.fromEntries(paths.map((path, i) => [path, right[i]!.count])),
        coded,
        old: Object.fromEntries(paths.map((path, i) => [path, documents[i]!])),
      },
      check: `
found = {path: ws.lines(path) or [] for path in TRUTH["files"]}
changed = any(found[path] != rows for path, rows in TRUTH["old"].items())
every = [line for rows in found.values() for line in rows]
counts = ws.json("changes.json")
scores = {path[5:-3]: float(changed and found[path] == rows and rows != TRUTH["old"][path]) for path, rows in TRUTH["files"].items()}
scores["code_kept"] = share(line in every for line in TRUTH["coded"]) if changed else 0.0
scores["lines"] = share(line in every for path, rows in TRUTH["files"].items() for line in rows if line not in TRUTH["old"][path]) if changed else 0.0
scores["counts"] = share(close(at(counts, path), count) for path, count in TRUTH["counts"].items())
return scores`,
      reference: plan(),
      wrong: {
        'code-changed': { why: 'terms inside back-ticks are replaced too', ...plan({ code: true }) },
        'parts-of-words': { why: 'parts of longer words are replaced too', ...plan({ parts: true }) },
        'shortest-first': {
          why: 'the short term is replaced inside the longer one',
          ...plan({ longest: false }),
        },
        'capitals-lost': { why: 'the new terms are always in lower case', ...plan({ capitals: false }) },
      },
    };
  },
};
