import { exec, read, write } from '../../steps.js';
import { addDays, csv, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

/** Old logs into archive/<month>/ with a manifest. Dominant mistake: the file that is exactly as old as the limit is moved too. */
export const logRotation: SetFamily = {
  name: 'log-rotation',
  domain: 'systems',
  level: 'base',
  make(random) {
    const today = addDays('2026-05-04', random.below(24));
    const limit = 14 + random.below(8);
    const ages = [
      0,
      2,
      limit - 3,
      limit - 1,
      limit,
      limit + 1,
      limit + 4,
      limit + 11,
      limit + 25,
      limit + 40,
    ];
    const held = limit + 11;
    const logs = ages.map((age) => {
      const date = addDays(today, -age);
      const rows = Array.from(
        { length: 2 + random.below(5) },
        (_, i) =>
          `${date} ${String(8 + i).padStart(2, '0')}:00 ${random.pick(['started', 'stopped', 'handled 12 jobs'])}`,
      );
      return {
        age,
        date,
        name: `desk-${date}${age === held ? '-keep' : ''}.txt`,
        text: lines(...rows),
        count: rows.length,
      };
    });
    const old = logs.filter((log) => log.age > limit && log.age !== held);
    const target = (log: (typeof logs)[number], flat = false): string =>
      flat ? `archive/${log.name}` : `archive/${log.date.slice(0, 7)}/${log.name}`;
    const manifest = (moved: typeof logs, flat = false): string =>
      csv(
        ['path', 'lines', 'bytes'],
        moved
          .map((log) => [target(log, flat), log.count, log.text.length] as [string, number, number])
          .sort((a, b) => (a[0] < b[0] ? -1 : 1)),
      );
    const plan = (moved: typeof logs, options: { verb?: string; flat?: boolean } = {}): Plan => ({
      steps: [
        read('rules.md'),
        exec('ls -l logs && wc logs/*.txt'),
        exec(
          moved
            .map((log) => target(log, options.flat))
            .map(
              (path, i) =>
                `mkdir -p ${path.replace(/\/[^/]*$/, '')} && ${options.verb ?? 'mv'} logs/${moved[i]!.name} ${path}`,
            )
            .join(' && '),
        ),
        write('archive/manifest.csv', manifest(moved, options.flat)),
      ],
    });
    const rows = (list: typeof logs): [string, number, number][] =>
      list
        .map((log) => [target(log), log.count, log.text.length] as [string, number, number])
        .sort((a, b) => (a[0] < b[0] ? -1 : 1));
    return {
      files: {
        ...Object.fromEntries(logs.map((log) => [`logs/${log.name}`, log.text])),
        'rules.md': lines(
          '# Log rotation',
          '',
          `- The date in the name counts. Logs that are more than ${limit} days old leave logs/; a log of exactly ${limit} days stays.`,
          '- They go to archive/<year>-<month>/ under the same name, for example archive/2026-01/desk-2026-01-30.txt.',
          '- A log whose name ends in -keep.txt stays, however old it is.',
        ),
      },
      query:
        `Today is ${today}. Move the old logs of logs/ into archive/ following rules.md. Write archive/manifest.csv with the header path,lines,bytes and one row for each moved file ` +
        '(path from the top, for example archive/2026-01/…; number of lines; size in bytes), sorted by path.',
      expected:
        'The agent moves exactly the logs older than the limit into monthly folders and writes the manifest.',
      truth: {
        moved: Object.fromEntries(old.map((log) => [target(log), log.text])),
        kept: Object.fromEntries(
          logs.filter((log) => !old.includes(log)).map((log) => [`logs/${log.name}`, log.text]),
        ),
        gone: old.map((log) => `logs/${log.name}`),
        rows: rows(old),
      },
      check: `
moved = {path: ws.text(path) == text for path, text in TRUTH["moved"].items()}
table = ws.table("archive/manifest.csv")
found = table[1] if table and table[0] == ["path", "lines", "bytes"] else None
any_moved = any(moved.values())
return {
    "moved": share(moved.values()),
    "nothing_else_archived": float(any_moved and set(ws.files("archive")) - {"archive/manifest.csv"} <= set(moved)),
    "left_logs": float(any_moved and not any(ws.exists(path) for path in TRUTH["gone"])),
    "others_kept": float(any_moved and all(ws.text(path) == text for path, text in TRUTH["kept"].items())),
    "manifest_paths": float(found is not None and [row[0] for row in found] == [row[0] for row in TRUTH["rows"]]),
    "manifest_numbers": members(found, TRUTH["rows"]),
}`,
      reference: plan(old),
      wrong: {
        'limit-moved': {
          why: 'the log that is exactly as old as the limit is moved too',
          ...plan(logs.filter((log) => log.age >= limit && log.age !== held)),
        },
        copied: { why: 'logs are copied instead of moved', ...plan(old, { verb: 'cp' }) },
        'keep-moved': { why: 'the log to keep is moved too', ...plan(logs.filter((log) => log.age > limit)) },
        flat: { why: 'all go into archive/ itself', ...plan(old, { flat: true }) },
      },
    };
  },
};
