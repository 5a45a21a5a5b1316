import { read, write } from '../../steps.js';
import { addDays, csv, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const PEOPLE = ['Mira', 'Jonas', 'Adaeze', 'Tomas', 'Ilse', 'Ravi'];
const TASKS = [
  'send the vendor list',
  'draft the hiring plan',
  'book the training room',
  'update the onboarding page',
  'collect the parking requests',
  'review the lease offer',
  'order spare badges',
  'close the travel survey',
  'summarise the visitor feedback',
];
const CHAT = [
  'The lift will be serviced next month.',
  'ACTION items are now kept in these notes only.',
  'Coffee supplier stays the same.',
  'The fire drill went well.',
];

/** Minutes of two meetings → open actions sorted by due date. Dominant mistake: dates moved in the second meeting are missed. */
export const meetingActions: SetFamily = {
  name: 'meeting-actions',
  domain: 'productivity',
  level: 'base',
  make(random) {
    const monday = addDays('2026-03-02', 7 * random.below(20));
    const later = addDays(monday, 7);
    // All due dates differ, so that their order is ruled.
    const offsets = random.shuffle(Array.from({ length: 14 }, (_, i) => 8 + i));
    const owners = random.shuffle(PEOPLE);
    const actions = random.shuffle(TASKS).map((task, i) => ({
      owner: owners[i % owners.length]!,
      task,
      due: addDays(monday, offsets[i]!),
      meeting: i < 5 ? 0 : 1,
    }));
    const [moved, dropped] = [actions[1]!, actions[3]!];
    const movedTo = addDays(monday, offsets[9]!);
    const line = (a: (typeof actions)[number]): string => `- ACTION (${a.owner}): ${a.task}, due ${a.due}`;
    const chat = random.shuffle(CHAT).map((text) => `- ${text}`);
    const first = lines(
      `# Office meeting, ${monday}`,
      '',
      `Present: ${PEOPLE.join(', ')}`,
      '',
      chat[0]!,
      ...actions.filter((a) => a.meeting === 0).map(line),
      chat[1]!,
    );
    const second = lines(
      `# Office meeting, ${later}`,
      '',
      `Present: ${PEOPLE.slice(1).join(', ')}`,
      '',
      `- DROPPED: ${dropped.task}`,
      chat[2]!,
      ...actions.filter((a) => a.meeting === 1).map(line),
      `- MOVED: ${moved.task}, now due ${movedTo}`,
      chat[3]!,
    );
    const rows = (options: { move?: boolean; drop?: boolean; sort?: boolean } = {}): string[][] => {
      const open = actions
        .filter((a) => options.drop === false || a !== dropped)
        .map((a) => [a.owner, a.task, a === moved && options.move !== false ? movedTo : a.due]);
      return options.sort === false ? open : open.sort((a, b) => (a[2]! < b[2]! ? -1 : 1));
    };
    const header = ['owner', 'task', 'due'];
    const paths = [`notes/${monday}.md`, `notes/${later}.md`];
    const plan = (options?: Parameters<typeof rows>[0]): Plan => ({
      steps: [...paths.map(read), write('actions.csv', csv(header, rows(options)))],
    });
    return {
      files: { [paths[0]!]: first, [paths[1]!]: second },
      query:
        `The minutes of two meetings are in notes/. Lines that begin with "- ACTION (" name an owner, a task and a due date. The second meeting (${later}) ` +
        'may move an action of the first one to another date (MOVED) or drop it (DROPPED). Write actions.csv with the header owner,task,due and one row ' +
        'for each action that is still open, with its latest due date (YYYY-MM-DD) and the task worded as in the minutes, sorted by due date, earliest first.',
      expected:
        'The agent reads both minutes, applies MOVED and DROPPED to the actions, and writes actions.csv sorted by due date.',
      truth: { rows: rows(), moved: [moved.owner, moved.task, movedTo], dropped: dropped.task },
      check: `
table = ws.table("actions.csv")
found = table[1] if table and table[0] == ["owner", "task", "due"] else None
dates = [row[2] for row in found] if found else []
return {
    "header": float(found is not None),
    "actions": members(found, TRUTH["rows"]),
    "order": places(found, TRUTH["rows"]),
    "sorted": float(len(dates) > 1 and dates == sorted(dates)),
    "moved": float(bool(found) and TRUTH["moved"] in found),
    "dropped": float(bool(found) and len(found) > 2 and all(row[1] != TRUTH["dropped"] for row in found)),
}`,
      reference: plan(),
      wrong: {
        'moved-missed': { why: 'the new date of the moved action is missed', ...plan({ move: false }) },
        'dropped-kept': { why: 'the dropped action is still listed', ...plan({ drop: false }) },
        unsorted: { why: 'rows stand in the order of the minutes', ...plan({ sort: false }) },
      },
    };
  },
};
