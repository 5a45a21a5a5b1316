import { read, write } from '../../steps.js';
import { addDays, csv } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const TITLES = [
  'budget talk',
  'site visit',
  'interview',
  'planning',
  'supplier call',
  'team lunch',
  'review',
  'training',
];

interface Event {
  title: string;
  owner: string;
  start: number;
  end: number;
}

/** Two calendars → one, and its conflicts. Dominant mistake: events that only touch count as a conflict. */
export const calendarMerge: SetFamily = {
  name: 'calendar-merge',
  domain: 'productivity',
  level: 'base',
  make(random) {
    const day = addDays('2026-04-06', random.below(60));
    const titles = random.shuffle(TITLES);
    // What lies between an event and the one before: a touch, an overlap, a gap. Starts grow, so that the order is ruled.
    const relations = ['touch', 'overlap', ...random.shuffle(['touch', 'overlap', 'gap', 'overlap', 'gap'])];
    const events: Event[] = [{ title: titles[0]!, owner: 'mira', start: 480 + 30 * random.below(2), end: 0 }];
    events[0]!.end = events[0]!.start + 60;
    relations.forEach((relation, i) => {
      const before = events.at(-1)!;
      const start =
        relation === 'touch' ? before.end : relation === 'overlap' ? before.start + 30 : before.end + 30;
      const owner = i === 3 ? 'both' : i % 2 === 0 ? 'jonas' : 'mira';
      events.push({ title: titles[i + 1]!, owner, start, end: start + 60 + 15 * random.below(3) });
    });
    const clock = (minutes: number): string =>
      `${day} ${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
    const calendar = (owner: string): string =>
      csv(
        ['title', 'start', 'end'],
        random
          .shuffle(events.filter((e) => e.owner === owner || e.owner === 'both'))
          .map((e) => [e.title, clock(e.start), clock(e.end)]),
      );
    const rows = (list: readonly Event[]): string[][] =>
      list.map((e) => [clock(e.start), clock(e.end), e.title, e.owner]);
    const conflicts = (touching: boolean): string[][] =>
      events.flatMap((a, i) =>
        events
          .slice(i + 1)
          .filter((b) => (touching ? b.start <= a.end : b.start < a.end))
          .map((b) => [a.title, b.title]),
      );
    const plan = (merged = rows(events), pairs = conflicts(false)): Plan => ({
      steps: [
        read('calendars/mira.csv'),
        read('calendars/jonas.csv'),
        write('merged.csv', csv(['start', 'end', 'title', 'who'], merged)),
        write('conflicts.csv', csv(['first', 'second'], pairs)),
      ],
    });
    const split = events.flatMap((e) =>
      e.owner === 'both' ? ['jonas', 'mira'].map((owner) => ({ ...e, owner })) : [e],
    );
    return {
      files: { 'calendars/mira.csv': calendar('mira'), 'calendars/jonas.csv': calendar('jonas') },
      query:
        'Merge calendars/mira.csv and calendars/jonas.csv into merged.csv with the header start,end,title,who, sorted by start; times as in the calendars, who is "mira" or ' +
        '"jonas". An event that stands in both calendars with the same title and times is one event with who "both". Write conflicts.csv with the header first,second: the ' +
        'titles of every two events (of anybody) that overlap, the earlier start first; pairs sorted by the start of the first, then of the second event. An event that starts when another one ends does not overlap it.',
      expected:
        'The agent merges both calendars, joins the shared event, and lists the pairs that truly overlap.',
      truth: {
        rows: rows(events),
        pairs: conflicts(false),
        shared: rows(events.filter((e) => e.owner === 'both')),
      },
      check: `
merged = ws.table("merged.csv")
rows = merged[1] if merged and merged[0] == ["start", "end", "title", "who"] else None
table = ws.table("conflicts.csv")
pairs = table[1] if table and table[0] == ["first", "second"] else None
starts = [row[0] for row in rows or []]
return {
    "headers": float(rows is not None and pairs is not None),
    "events": members(rows, TRUTH["rows"]),
    "sorted": float(len(starts) > 3 and starts == sorted(starts)),
    "shared_once": float(bool(rows) and [row for row in rows if row[2] == TRUTH["shared"][0][2]] == TRUTH["shared"]),
    "conflicts": members(pairs, TRUTH["pairs"]),
    "conflicts_order": float(same(pairs, TRUTH["pairs"])),
}`,
      reference: plan(),
      wrong: {
        'touching-counted': {
          why: 'events that only touch count as a conflict',
          ...plan(undefined, conflicts(true)),
        },
        'shared-twice': { why: 'the shared event stands there once for each owner', ...plan(rows(split)) },
        'not-sorted': {
          why: 'one calendar is appended to the other',
          ...plan(rows([...events].sort((a, b) => (a.owner < b.owner ? 1 : a.owner > b.owner ? -1 : 0)))),
        },
      },
    };
  },
};
