import { read, write } from '../../steps.js';
import { json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const CODES = ['E101', 'E204', 'E317', 'E550'];
const SERVICES = ['billing', 'search', 'mailer'];
const FAILURES = ['timeout after 30 s', 'connection refused', 'row is locked', 'bad checksum'];

/** A service log → counts of errors. Dominant mistake: every line with the word ERROR is counted, also traces and warnings. */
export const logErrors: SetFamily = {
  name: 'log-errors',
  domain: 'systems',
  level: 'base',
  make(random) {
    const day = `2026-0${1 + random.below(9)}-1${random.below(10)}`;
    // Counts that differ, so that one code leads.
    const counts = random.shuffle([2, 3, 4, 6]);
    const events = random
      .shuffle([
        ...CODES.flatMap((code, i) =>
          Array.from({ length: counts[i]! }, () => ({ level: 'ERROR', code, text: random.pick(FAILURES) })),
        ),
        ...Array.from({ length: 5 }, () => ({ level: 'INFO', code: '', text: 'job finished' })),
        ...Array.from({ length: 4 }, () => ({ level: 'WARN', code: '', text: 'last ERROR was retried' })),
      ])
      .map((event, i) => ({
        ...event,
        service: random.pick(SERVICES),
        time: `${day}T${String(6 + Math.floor(i / 4)).padStart(2, '0')}:${String((i % 4) * 13 + random.below(12)).padStart(2, '0')}:07Z`,
      }));
    const repeats = new Set(random.shuffle(events.filter((e) => e.level === 'ERROR')).slice(0, 4));
    const head = (e: (typeof events)[number]): string =>
      `${e.time} ${e.level} [${e.service}] ${e.code && `code=${e.code} `}${e.text}`;
    const log = lines(
      ...events.flatMap((e, i) => [
        head(e),
        ...(repeats.has(e) ? [head(e)] : []),
        ...(e.level === 'ERROR' && i % 3 === 0
          ? ['    at worker.step (ERROR raised here)', `    caused by: ERROR code=${e.code} in driver`]
          : []),
      ]),
    );
    const summarise = (pick: (rows: string[]) => string[]): object => {
      const rows = pick(log.trimEnd().split('\n'));
      const by = Object.fromEntries(
        CODES.map((code) => [code, rows.filter((row) => row.includes(`code=${code} `)).length]),
      );
      const stamped = rows.filter((row) => row.startsWith(day));
      return {
        total: rows.length,
        by_code: by,
        top_code: CODES.reduce((a, b) => (by[b]! > by[a]! ? b : a)),
        first: stamped[0]!.slice(0, 20),
        last: stamped.at(-1)!.slice(0, 20),
      };
    };
    const errors = (rows: string[]): string[] => rows.filter((row) => / ERROR \[/.test(row));
    const right = summarise((rows) => [...new Set(errors(rows))]);
    const plan = (answer: object): Plan => ({
      steps: [read('service-log.txt'), write('errors.json', json(answer))],
    });
    return {
      files: { 'service-log.txt': log },
      query:
        'service-log.txt holds log entries: time, level, [service], text. Indented lines belong to the entry above and are no entries. An entry that is repeated ' +
        'word for word counts once. Write errors.json about the entries of level ERROR: {"total": how many, "by_code": {code: how many, …}, ' +
        '"top_code": the most frequent code, "first": time of the earliest, "last": time of the latest}; times as they stand in the log.',
      expected:
        'The agent counts entries whose level is ERROR, without traces, warnings that mention an error, and repeated entries, and writes errors.json.',
      truth: right,
      check: `
found = ws.json("errors.json")
codes = at(found, "by_code")
return {
    "total": float(close(at(found, "total"), TRUTH["total"])),
    "codes_named": float(isinstance(codes, dict) and set(codes) == set(TRUTH["by_code"])),
    "counts": share(close(at(codes, code), n) for code, n in TRUTH["by_code"].items()),
    "top_code": float(at(found, "top_code") == TRUTH["top_code"]),
    "first": float(at(found, "first") == TRUTH["first"]),
    "last": float(at(found, "last") == TRUTH["last"]),
}`,
      reference: plan(right),
      wrong: {
        'word-counted': {
          why: 'every line with the word ERROR is counted',
          ...plan(summarise((rows) => rows.filter((row) => row.includes('ERROR')))),
        },
        'repeats-counted': { why: 'repeated entries count twice', ...plan(summarise(errors)) },
        'codes-as-list': {
          why: 'by_code is a list of pairs instead of an object',
          ...plan({ ...right, by_code: Object.entries((right as { by_code: object }).by_code) }),
        },
      },
    };
  },
};
