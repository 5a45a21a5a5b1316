import { read, write } from '../../steps.js';
import { csv, json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'];
const KINDS = ['early', 'day', 'late'];
const NAMES = ['Anja', 'Bilal', 'Clio', 'Dov', 'Esra', 'Femi', 'Gus'];

/** A week of shifts under rules; any roster that keeps them is right. Dominant mistake: an early shift after a late one. */
export const shiftRoster: SetFamily = {
  name: 'shift-roster',
  domain: 'planning',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    for (;;) {
      const people = random.shuffle(NAMES).map((name, i) => ({
        name,
        skill: i < 4 ? 'forklift' : 'none',
        contract: i < 2 ? 2 : 3,
        away: [random.pick(DAYS)],
      }));
      const shifts = DAYS.flatMap((day) =>
        KINDS.map((kind) => ({ id: `${day}-${kind}`, day, kind, forklift: kind === 'day' })),
      );
      // A note takes back one absence and adds another; the newer note changes the latter's day.
      const [swapper, worker] = [people[3]!, people[5]!];
      const [firstDay, newDay] = random.shuffle(DAYS.filter((day) => !swapper.away.includes(day))) as [
        string,
        string,
      ];
      const away = new Map(people.map((p) => [p.name, [...p.away]]));
      away.get(swapper.name)!.push(newDay);
      away.set(worker.name, []);
      const listed = new Map(people.map((p) => [p.name, p.away]));
      type Roster = string[];
      interface Rules {
        away?: Map<string, string[]>;
        rest?: boolean;
        contract?: boolean;
        skill?: boolean;
      }
      const solve = (rules: Rules): Roster | null => {
        const roster: Roster = [];
        const fits = (name: string, at: number): boolean => {
          const shift = shifts[at]!;
          const person = people.find((p) => p.name === name)!;
          const on = (id: string): boolean => shifts.some((s, i) => s.id === id && roster[i] === name);
          const yesterday = DAYS[DAYS.indexOf(shift.day) - 1];
          if ((rules.away ?? away).get(name)!.includes(shift.day)) return false;
          if (KINDS.some((kind) => on(`${shift.day}-${kind}`))) return false;
          if (rules.rest !== false && shift.kind === 'early' && yesterday && on(`${yesterday}-late`))
            return false;
          if (rules.skill !== false && shift.forklift && person.skill !== 'forklift') return false;
          return (
            rules.contract === false || roster.filter((other) => other === name).length < person.contract
          );
        };
        let budget = 20_000;
        const place = (at: number): boolean => {
          if (at === shifts.length) return true;
          for (const { name } of random.shuffle(people)) {
            if (budget-- < 0) return false;
            if (!fits(name, at)) continue;
            roster[at] = name;
            if (place(at + 1)) return true;
            roster.length = at;
          }
          return false;
        };
        return place(0) ? roster : null;
      };
      const broken = (roster: Roster) => {
        const on = (name: string, id: string): boolean =>
          shifts.some((s, i) => s.id === id && roster[i] === name);
        return {
          away: roster.some((name, i) => away.get(name)!.includes(shifts[i]!.day)),
          rest: people.some(({ name }) =>
            DAYS.some((day, i) => i > 0 && on(name, `${DAYS[i - 1]!}-late`) && on(name, `${day}-early`)),
          ),
          contract: people.some(
            ({ name, contract }) => roster.filter((other) => other === name).length > contract,
          ),
          skill: roster.some(
            (name, i) => shifts[i]!.forklift && people.find((p) => p.name === name)!.skill !== 'forklift',
          ),
        };
      };
      const violating = (rules: Rules, which: keyof ReturnType<typeof broken>): Roster | null => {
        for (let i = 0; i < 30; i++) {
          const roster = solve(rules);
          if (roster && broken(roster)[which]) return roster;
        }
        return null;
      };
      const right = solve({});
      const tired = violating({ rest: false }, 'rest');
      const absent = violating({ away: listed }, 'away');
      const overworked = violating({ contract: false }, 'contract');
      const unskilled = violating({ skill: false }, 'skill');
      if (!right || !tired || !absent || !overworked || !unskilled) continue;
      const files = {
        'people.csv': csv(
          ['name', 'skill', 'most_shifts'],
          people.map((p) => [p.name, p.skill, p.contract]),
        ),
        'shifts.csv': csv(
          ['shift', 'day', 'kind', 'needs'],
          shifts.map((s) => [s.id, s.day, s.kind, s.forklift ? 'forklift' : '']),
        ),
        'absences.csv': csv(
          ['name', 'day'],
          people.flatMap((p) => p.away.map((day) => [p.name, day])),
        ),
        'notes/01-sunday-morning.md': lines(
          '# Notes',
          '',
          `- ${swapper.name} is also away on ${firstDay}.`,
          `- ${worker.name} can work every day after all.`,
        ),
        'notes/02-sunday-evening.md': lines(
          '# Notes',
          '',
          `- Correction: ${swapper.name} works on ${firstDay} as usual but is away on ${newDay}.`,
        ),
        'rules.md': lines(
          '# Rules of the roster',
          '',
          '1. Every shift has exactly one person.',
          '2. Nobody has more than one shift on a day.',
          '3. Nobody has an early shift on the day after a late shift.',
          '4. Nobody has more shifts in the week than most_shifts.',
          '5. A shift that needs a skill goes to a person who has it.',
          '6. Nobody works on a day on which they are away: absences.csv, changed by the notes; the newer note holds.',
        ),
      };
      const loads = (roster: Roster): Record<string, number> =>
        Object.fromEntries(people.map(({ name }) => [name, roster.filter((other) => other === name).length]));
      const plan = (roster: Roster): Plan => ({
        steps: [
          ...Object.keys(files).map(read),
          write(
            'roster.csv',
            csv(
              ['shift', 'person'],
              roster.map((name, i) => [shifts[i]!.id, name]),
            ),
          ),
          write('loads.json', json(loads(roster))),
          ...people.map(({ name }) =>
            write(
              `plans/${name}.txt`,
              lines(
                ...shifts.flatMap((s, i) => (roster[i] === name ? [s.id] : [])),
                ...(loads(roster)[name] === 0 ? ['none'] : []),
              ),
            ),
          ),
        ],
      });
      return {
        files,
        query:
          'Make a roster for the shifts of shifts.csv following rules.md; any roster that keeps all rules is right. Write roster.csv (header shift,person; one row for each shift in the order of shifts.csv), ' +
          'loads.json (an object from each person of people.csv to their number of shifts, 0 included) and plans/<name>.txt for each person: their shifts, one per line in the order of shifts.csv, or the line "none".',
        expected:
          'The agent finds a roster that keeps all six rules with the corrected absences, and writes loads and personal plans that agree with it.',
        truth: {
          shifts: shifts.map((s) => [s.id, s.day, s.kind, s.forklift]),
          people: Object.fromEntries(people.map((p) => [p.name, [p.skill, p.contract]])),
          away: Object.fromEntries(away),
          days: DAYS,
        },
        check: `
table = ws.table("roster.csv")
rows = table[1] if table and table[0] == ["shift", "person"] else []
shifts, people, days = TRUTH["shifts"], TRUTH["people"], TRUTH["days"]
whole = [row[0] for row in rows] == [shift[0] for shift in shifts] and all(row[1] in people for row in rows)
duty = [(row[1], shift[1], shift[2], shift[3]) for row, shift in zip(rows, shifts)] if whole else []
counts = {name: sum(who == name for who, *_ in duty) for name in people}
taken = {(who, day, kind) for who, day, kind, _ in duty}
tired = any((who, days[i - 1], "late") in taken and (who, days[i], "early") in taken for who in people for i in range(1, len(days)))
own = {name: [row[0] for row in rows if row[1] == name] or ["none"] for name in people} if whole else {}
return {
    "every_shift": float(whole),
    "one_a_day": float(whole and len({(who, day) for who, day, *_ in duty}) == len(duty)),
    "rest": float(whole and not tired),
    "most_shifts": float(whole and all(counts[name] <= people[name][1] for name in people)),
    "skills": float(whole and all(people[who][0] == "forklift" for who, _, _, forklift in duty if forklift)),
    "absences": float(whole and all(day not in TRUTH["away"][who] for who, day, *_ in duty)),
    "loads": float(whole and same(ws.json("loads.json"), counts)),
    "plans": share([line.strip() for line in ws.lines("plans/%s.txt" % name) or []] == rows_ for name, rows_ in own.items()),
}`,
        reference: plan(right),
        wrong: {
          'no-rest': { why: 'somebody has an early shift after a late one', ...plan(tired) },
          'notes-ignored': { why: 'the notes about absences are not applied', ...plan(absent) },
          'too-many-shifts': { why: 'somebody works more than their contract says', ...plan(overworked) },
          unskilled: {
            why: 'a shift that needs a forklift licence goes to somebody without',
            ...plan(unskilled),
          },
        },
      };
    }
  },
};
