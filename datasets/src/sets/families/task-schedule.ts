import { read, write } from '../../steps.js';
import { csv, json } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const WORK = [
  'survey',
  'permits',
  'design',
  'order parts',
  'wiring',
  'flooring',
  'painting',
  'furniture',
  'inspection',
];

/** Durations and dependencies → earliest starts. Dominant mistake: of several predecessors only the first one counts. */
export const taskSchedule: SetFamily = {
  name: 'task-schedule',
  domain: 'planning',
  level: 'base',
  make(random) {
    const tasks = WORK.map((name, i) => ({
      id: String.fromCharCode(65 + i),
      name,
      days: 1 + random.below(6),
      after: [] as string[],
    }));
    tasks.forEach((task, i) => {
      if (i > 0) task.after.push(tasks[random.below(i)]!.id);
      if (i > 2) task.after.push(random.pick(tasks.slice(0, i).filter(({ id }) => id !== task.after[0])).id);
    });
    type Ends = Map<string, { start: number; end: number }>;
    const run = (which: (after: string[], ends: Ends) => string[], gap = 1): Ends => {
      const ends: Ends = new Map();
      for (const { id, days, after } of tasks) {
        const start = Math.max(1, ...which(after, ends).map((other) => ends.get(other)!.end + gap));
        ends.set(id, { start, end: start + days - 1 });
      }
      return ends;
    };
    const right = run((after) => after);
    const latestFirst = (after: string[], ends: Ends): string[] =>
      [...after].sort((a, b) => ends.get(b)!.end - ends.get(a)!.end);
    // The predecessor that ends last is named last, so that whoever reads only the first one goes wrong.
    for (const task of tasks) task.after = latestFirst(task.after, right).reverse();
    const rows = (ends: Ends): (string | number)[][] =>
      [...ends]
        .map(([id, { start, end }]) => [id, start, end] as [string, number, number])
        .sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1));
    const finish = (ends: Ends): number => Math.max(...[...ends.values()].map(({ end }) => end));
    const header = ['task', 'start', 'end'];
    const plan = (ends: Ends, table = rows(ends)): Plan => ({
      steps: [
        read('tasks.csv'),
        write('schedule.csv', csv(header, table)),
        write('summary.json', json({ finish_day: finish(ends), last_tasks: lastOf(ends) })),
      ],
    });
    const lastOf = (ends: Ends): string[] =>
      [...ends].filter(([, { end }]) => end === finish(ends)).map(([id]) => id);
    const serial: Ends = new Map();
    let day = 1;
    for (const { id, days } of tasks) serial.set(id, { start: day, end: (day += days) - 1 });
    return {
      files: {
        'tasks.csv': csv(
          ['task', 'name', 'days', 'after'],
          random.shuffle(tasks).map((t) => [t.id, t.name, t.days, t.after.join(';')]),
        ),
      },
      query:
        'tasks.csv lists the tasks of a move: days is the duration, after the tasks (separated by ";") that must have ended before. Day 1 is the first day; a task of 3 days ' +
        'that starts on day 4 ends on day 6; a task starts on the day after the last of its predecessors ended, or on day 1. Write schedule.csv with the header ' +
        'task,start,end (day numbers; earliest possible starts), sorted by start, then by task. Write summary.json with "finish_day" (the day on which everything is ' +
        'done) and "last_tasks" (the list of the tasks that end on that day, alphabetical).',
      expected:
        'The agent works out the earliest start of every task from all its predecessors and writes the schedule and its summary.',
      truth: { rows: rows(right), finish: finish(right), last: lastOf(right) },
      check: `
table = ws.table("schedule.csv")
found = table[1] if table and table[0] == ["task", "start", "end"] else None
by = {row[0]: row for row in found or []}
summary = ws.json("summary.json")
return {
    "header": float(found is not None),
    "starts": share(number(at(by.get(row[0]), 1)) == row[1] for row in TRUTH["rows"]),
    "ends": share(number(at(by.get(row[0]), 2)) == row[2] for row in TRUTH["rows"]),
    "order": places(found, TRUTH["rows"]),
    "finish_day": float(number(at(summary, "finish_day")) == TRUTH["finish"]),
    "last_tasks": float(same(at(summary, "last_tasks"), TRUTH["last"])),
}`,
      reference: plan(right),
      wrong: {
        'first-predecessor': {
          why: 'of several predecessors only the first one counts',
          ...plan(run((after) => after.slice(0, 1))),
        },
        'same-day': {
          why: 'a task starts on the day its predecessor ends',
          ...plan(run((after) => after, 0)),
        },
        serial: { why: 'the tasks are done one after the other', ...plan(serial) },
      },
    };
  },
};
