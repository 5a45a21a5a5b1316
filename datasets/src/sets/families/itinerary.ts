import { read, write } from '../../steps.js';
import { csv, json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const CITIES = ['Arden', 'Belmar', 'Corva', 'Dunmore'];

/** The cheapest connection that keeps the facts. Dominant mistake: the time to change trains is not minded. */
export const itinerary: SetFamily = {
  name: 'itinerary',
  domain: 'planning',
  level: 'base',
  make(random) {
    const [home, hub, other, goal] = random.shuffle(CITIES) as [string, string, string, string];
    for (;;) {
      const change = 15 + 5 * random.below(4);
      const leave = 6 * 60 + 15 * random.below(4);
      const meeting = 11 * 60 + 15 * random.below(4);
      const before = 20 + 10 * random.below(3);
      const leg = (
        from: string,
        to: string,
        earliest: number,
      ): { from: string; to: string; start: number; end: number; price: number } => {
        const start = earliest + 5 * random.below(30);
        return { from, to, start, end: start + 50 + 5 * random.below(12), price: 12 + random.below(60) };
      };
      const legs = random
        .shuffle([
          ...Array.from({ length: 4 }, () => leg(home, hub, leave - 40)),
          ...Array.from({ length: 4 }, () => leg(hub, goal, leave + 60)),
          ...Array.from({ length: 3 }, () => leg(home, other, leave - 20)),
          ...Array.from({ length: 3 }, () => leg(other, goal, leave + 60)),
          leg(home, goal, leave + 90),
        ])
        .map((entry, i) => ({ id: `T${i + 10}`, ...entry }));
      type Trip = typeof legs;
      const trips: Trip[] = [
        ...legs.filter((a) => a.from === home && a.to === goal).map((a) => [a]),
        ...legs
          .filter((a) => a.from === home)
          .flatMap((a) => legs.filter((b) => b.from === a.to && b.to === goal).map((b) => [a, b])),
      ];
      const rules: ((trip: Trip) => boolean)[] = [
        (trip) => trip[0]!.start >= leave,
        (trip) => trip.length < 2 || trip[1]!.start >= trip[0]!.end + change,
        (trip) => trip.at(-1)!.end <= meeting - before,
      ];
      const price = (trip: Trip): number => trip.reduce((a, b) => a + b.price, 0);
      const best = (kept: typeof rules): Trip[] => {
        const open = trips.filter(
          (trip) => (trip.length < 2 || trip[1]!.start >= trip[0]!.end) && kept.every((rule) => rule(trip)),
        );
        const least = Math.min(...open.map(price));
        return open.filter((trip) => price(trip) === least);
      };
      const right = best(rules);
      if (right.length !== 1) continue;
      const hasty = best(rules.filter((_, i) => i !== 1))[0]!;
      const late = best(rules.slice(0, 2))[0]!;
      const early = best(rules.slice(1))[0]!;
      const key = (trip: Trip): string => trip.map(({ id }) => id).join();
      if ([hasty, late, early].some((trip) => key(trip) === key(right[0]!))) continue;
      const clock = (minutes: number): string =>
        `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
      const rows = (trip: Trip): string[][] =>
        trip.map((l) => [l.id, l.from, l.to, clock(l.start), clock(l.end)]);
      const summary = (trip: Trip): { price: number; minutes: number; changes: number } => ({
        price: price(trip),
        minutes: trip.at(-1)!.end - trip[0]!.start,
        changes: trip.length - 1,
      });
      const header = ['train', 'from', 'to', 'departs', 'arrives'];
      const plan = (trip: Trip): Plan => ({
        steps: [
          read('trains.csv'),
          read('facts.md'),
          write('itinerary.csv', csv(header, rows(trip))),
          write('summary.json', json(summary(trip))),
        ],
      });
      return {
        files: {
          'trains.csv': csv(
            ['train', 'from', 'to', 'departs', 'arrives', 'price'],
            legs.map((l) => [l.id, l.from, l.to, clock(l.start), clock(l.end), l.price]),
          ),
          'facts.md': lines(
            '# Facts',
            '',
            `- The trip goes from ${home} to ${goal}; all trains run on the day of the meeting.`,
            `- We can't leave ${home} before ${clock(leave)}.`,
            `- A change of trains needs at least ${change} minutes.`,
            `- The meeting begins at ${clock(meeting)}; we must arrive at least ${before} minutes before.`,
          ),
        },
        query:
          'Find the cheapest trip (one train, or two with a change) from trains.csv that keeps all facts of facts.md. Write itinerary.csv with the header train,from,to,departs,arrives and one row for each train in the order of travel ' +
          '(values as in trains.csv), and summary.json: {"price": total, "minutes": from the first departure to the last arrival, "changes": how many}.',
        expected:
          'The agent finds the cheapest connection that respects departure, transfer and arrival limits.',
        truth: {
          rows: rows(right[0]!),
          ...summary(right[0]!),
          ...{ change, leave: clock(leave), latest: clock(meeting - before), ends: [home, goal] },
        },
        check: `
def minutes(clock):
    parts = clock.split(":")
    return int(parts[0]) * 60 + int(parts[1]) if len(parts) == 2 and all(part.isdigit() and len(part) < 4 for part in parts) else -1

table = ws.table("itinerary.csv")
found = table[1] if table and table[0] == ["train", "from", "to", "departs", "arrives"] else None
legs = [(minutes(row[3]), minutes(row[4])) for row in found or []]
whole = bool(found) and [found[0][1], found[-1][2]] == TRUTH["ends"]
summary = ws.json("summary.json")
return {
    "trip": float(whole),
    "times_kept": float(whole and legs[0][0] >= minutes(TRUTH["leave"]) and legs[-1][1] <= minutes(TRUTH["latest"])),
    "change_kept": float(whole and all(b[0] >= a[1] + TRUTH["change"] for a, b in zip(legs, legs[1:]))),
    "cheapest": float(same(found, TRUTH["rows"])),
    "price": float(close(at(summary, "price"), TRUTH["price"])),
    "minutes": float(close(at(summary, "minutes"), TRUTH["minutes"])),
    "changes": float(whole and close(at(summary, "changes"), TRUTH["changes"])),
}`,
        reference: plan(right[0]!),
        wrong: {
          'change-too-short': { why: 'the time to change trains is not minded', ...plan(hasty) },
          'too-late': { why: 'arrives too late for the meeting', ...plan(late) },
          'too-early': { why: 'leaves before it is possible', ...plan(early) },
        },
      };
    }
  },
};
