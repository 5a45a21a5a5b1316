import { read, write } from '../../steps.js';
import { lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const KEYS = [
  'PORT',
  'HOST',
  'DB_URL',
  'DB_POOL',
  'CACHE_TTL',
  'LOG_LEVEL',
  'MAIL_FROM',
  'WORKERS',
  'REGION',
];
const STALE = ['OLD_QUEUE', 'LEGACY_MODE', 'TRACE_DIR'];

/** A settings file is brought in line with its example. Dominant mistake: values in use are overwritten by the example's. */
export const envSync: SetFamily = {
  name: 'env-sync',
  domain: 'systems',
  level: 'base',
  make(random) {
    const keys = random.shuffle(KEYS);
    const fresh = new Set([keys[1]!, keys[4]!]);
    const value = (key: string, kind: string): string =>
      key === 'DB_URL'
        ? `postgres://${kind}.internal:${5400 + random.below(90)}/main?ssl=on&pool=${2 + random.below(8)}`
        : `${kind}-${100 + random.below(900)}`;
    const example = keys.map((key) => ({ key, value: value(key, 'sample') }));
    const comments = [`# Settings of the order desk`, `# Network and storage`, `# Limits`];
    const current = random.shuffle([
      ...keys.filter((key) => !fresh.has(key)).map((key) => ({ key, value: value(key, 'live') })),
      ...random
        .shuffle(STALE)
        .slice(0, 2)
        .map((key) => ({ key, value: value(key, 'live') })),
    ]);
    const pair = (e: { key: string; value: string }): string => `${e.key}=${e.value}`;
    const layout = (entries: typeof example): string[] => [
      comments[0]!,
      ...entries.slice(0, 3).map(pair),
      '',
      comments[1]!,
      ...entries.slice(3, 6).map(pair),
      '',
      comments[2]!,
      ...entries.slice(6).map(pair),
    ];
    const live = new Map(current.map((e) => [e.key, e.value]));
    const merged = example.map((e) => ({ key: e.key, value: live.get(e.key) ?? e.value }));
    const stale = current.filter(({ key }) => STALE.includes(key));
    const removed = stale.map(({ key }) => key).sort();
    const plan = (rows: readonly string[], gone: readonly string[] = removed): Plan => ({
      steps: [
        read('config/example.env'),
        read('config/app.env'),
        write('config/app.env', lines(...rows)),
        write('removed.txt', lines(...gone)),
      ],
    });
    return {
      files: {
        'config/example.env': lines(...layout(example)),
        'config/app.env': lines(...current.map(pair)),
      },
      query:
        'Bring config/app.env in line with config/example.env: afterwards app.env has the comments, empty lines and keys of example.env in the same order; a key that app.env had already keeps its value, ' +
        'a new key gets the value of example.env, and a key that is not in example.env is gone. List the keys that are gone in removed.txt, one per line, sorted alphabetically. Leave example.env as it is.',
      expected:
        'The agent rewrites app.env in the order of the example, keeps values in use, adds new keys and lists removed ones.',
      truth: {
        lines: layout(merged),
        kept: merged.filter(({ key }) => !fresh.has(key)).map(pair),
        fresh: merged.filter(({ key }) => fresh.has(key)).map(pair),
        removed,
        example: layout(example),
      },
      check: `
found = ws.lines("config/app.env") or []
keys = [line.split("=", 1)[0] for line in found if "=" in line]
wanted = [line.split("=", 1)[0] for line in TRUTH["lines"] if "=" in line]
ordered = keys == wanted
return {
    "keys_in_order": float(ordered),
    "values_kept": share(line in found for line in TRUTH["kept"]) if ordered else 0.0,
    "new_keys": float(all(line in found for line in TRUTH["fresh"])),
    "comments": float([line for line in found if "=" not in line] == [line for line in TRUTH["lines"] if "=" not in line]),
    "removed": float(ws.lines("removed.txt") == TRUTH["removed"]),
    "example_kept": float(ordered and ws.lines("config/example.env") == TRUTH["example"]),
}`,
      reference: plan(layout(merged)),
      wrong: {
        overwritten: {
          why: 'values in use are overwritten by those of the example',
          ...plan(layout(example)),
        },
        'stale-kept': {
          why: 'keys that the example does not know stay',
          ...plan([...layout(merged), '', ...stale.map(pair)], []),
        },
        appended: {
          why: 'new keys are appended to the old file, whose order stays',
          ...plan([
            ...current.filter(({ key }) => !STALE.includes(key)).map(pair),
            ...merged.filter(({ key }) => fresh.has(key)).map(pair),
          ]),
        },
      },
    };
  },
};
