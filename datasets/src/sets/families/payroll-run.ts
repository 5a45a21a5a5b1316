import { read, write } from '../../steps.js';
import { addDays, csv, json, lines, money, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const NAMES = ['Aino', 'Bela', 'Carmen', 'Deniz', 'Elif', 'Finn'];
const WEEKS = [0, 1, 2, 3];

interface Options {
  threshold?: number;
  twice?: boolean;
  oldRate?: boolean;
  absences?: boolean;
}

/** Four weeks of timesheets → payroll, payslips, flags. Dominant mistake: the older limit for overtime. */
export const payrollRun: SetFamily = {
  name: 'payroll-run',
  domain: 'productivity',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const monday = addDays('2026-02-02', 28 * random.below(8));
    const mondays = WEEKS.map((week) => addDays(monday, 7 * week));
    const names = random.shuffle(NAMES);
    const staff = names.map((name, i) => ({
      id: `E${21 + i}`,
      name,
      // The second rate is valid from the third week on.
      rates:
        i < 3 ? [1800 + 25 * random.below(30), 2600 + 25 * random.below(30)] : [1700 + 25 * random.below(40)],
    }));
    const [oldLimit, limit] = [40, 37 + random.below(2)];
    const sheet = WEEKS.map((week) =>
      staff.map(({ id }, i) => ({
        id,
        // Hours in quarters: exact. One person has no sheet in week 2, another none in week 3.
        hours: (week === 1 && i === 4) || (week === 2 && i === 5) ? null : 30 + random.below(60) / 4,
      })),
    );
    sheet[0]![0]!.hours = limit + 1;
    sheet[3]![2]!.hours = oldLimit + 5.5;
    sheet[3]![4]!.hours = oldLimit + 2;
    // Approved days of absence; the person of week 3 has one and is therefore not flagged.
    const absences = [
      { id: staff[5]!.id, week: 2, days: 5, approved: 'yes' },
      { id: staff[1]!.id, week: 1, days: 1, approved: 'yes' },
      { id: staff[4]!.id, week: 1, days: 5, approved: 'no' },
    ];
    const repeated = { week: 3, person: 2 };
    const run = ({
      threshold = limit,
      twice = false,
      oldRate = false,
      absences: paidLeave = true,
    }: Options = {}) => {
      const slips = staff.map(({ id, name, rates }, i) => {
        const weeks = WEEKS.map((week) => {
          const rate = rates[week >= 2 && !oldRate ? rates.length - 1 : 0]!;
          const hours =
            (sheet[week]![i]!.hours ?? 0) *
            (twice && repeated.week === week && repeated.person === i ? 2 : 1);
          const over = Math.max(0, hours - threshold);
          const away = paidLeave
            ? sum(
                absences
                  .filter((a) => a.id === id && a.week === week && a.approved === 'yes')
                  .map((a) => a.days * 8),
              )
            : 0;
          return { hours, over, away, pay: money(((hours - over + away) * rate + over * rate * 1.5) / 100) };
        });
        const total = (key: 'hours' | 'over' | 'away' | 'pay'): number =>
          money(sum(weeks.map((week) => week[key])));
        return {
          employee: id,
          name,
          hours: total('hours'),
          overtime: total('over'),
          absence: total('away'),
          pay: total('pay'),
        };
      });
      return slips;
    };
    const right = run();
    const flags = [
      `- ${staff[2]!.id}: repeated row in week ${mondays[3]!}`,
      `- ${staff[4]!.id}: no timesheet in week ${mondays[1]!}`,
    ].sort();
    const files = {
      ...Object.fromEntries(
        WEEKS.map((week) => {
          const rows = random
            .shuffle(sheet[week]!.filter((row) => row.hours !== null))
            .map((row) => [row.id, mondays[week]!, row.hours!]);
          if (week === repeated.week)
            rows.push([staff[repeated.person]!.id, mondays[week]!, sheet[week]![repeated.person]!.hours!]);
          return [`timesheets/${mondays[week]!}.csv`, csv(['employee', 'week', 'hours'], rows)];
        }),
      ),
      'employees.csv': csv(
        ['employee', 'name'],
        staff.map(({ id, name }) => [id, name]),
      ),
      'rates.csv': csv(
        ['employee', 'valid_from', 'rate'],
        staff.flatMap(({ id, rates }) =>
          rates.map((rate, i) => [id, i === 0 ? addDays(monday, -70) : mondays[2]!, (rate / 100).toFixed(2)]),
        ),
      ),
      'absences.csv': csv(
        ['employee', 'week', 'days', 'approved'],
        absences.map((a) => [a.id, mondays[a.week]!, a.days, a.approved]),
      ),
      'policy.md': lines(
        '# Payroll',
        '',
        '1. A week is named by its Monday. Each week uses the newest rate (EUR an hour) that is valid from that Monday or earlier.',
        '2. Hours of a week beyond the overtime limit are paid 1.5 times the rate.',
        '3. An approved day of absence counts as 8 hours at the plain rate; such hours are never overtime and do not count towards the limit.',
        '4. A row that stands twice in a timesheet counts once and is flagged: "repeated row in week <Monday>".',
        '5. Who has neither a row nor an approved absence in a week is flagged: "no timesheet in week <Monday>".',
        '6. The pay of each week is rounded to 2 decimals (halves up), then the weeks are added up.',
        '7. Where amendments contradict each other, the newer one holds.',
      ),
      [`amendments/${addDays(monday, -200)}.md`]: lines(
        '# Amendment',
        '',
        `The overtime limit is ${oldLimit} hours a week.`,
      ),
      [`amendments/${addDays(monday, -20)}.md`]: lines(
        '# Amendment',
        '',
        `The overtime limit is ${limit} hours a week.`,
      ),
    };
    const header = ['employee', 'name', 'hours', 'overtime', 'absence_hours', 'pay'];
    const plan = (slips: typeof right, noted = flags): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        write(
          'payroll.csv',
          csv(
            header,
            slips.map((s) => [s.employee, s.name, s.hours, s.overtime, s.absence, s.pay.toFixed(2)]),
          ),
        ),
        ...slips.map((s) =>
          write(`payslips/${s.employee}.json`, json({ employee: s.employee, name: s.name, pay: s.pay })),
        ),
        write(
          'summary.json',
          json({
            employees: slips.length,
            total_pay: money(sum(slips.map((s) => s.pay))),
            flags: noted.length,
          }),
        ),
        write('flags.md', lines('# Flags', '', ...noted)),
      ],
    });
    return {
      files,
      query:
        `Run the payroll for the four weeks from ${monday} on following policy.md and the amendments. Write payroll.csv (header employee,name,hours,overtime,absence_hours,pay; sorted by employee; hours are the hours of the timesheets, ` +
        'overtime is the part of them beyond the limit; pay with 2 decimals), payslips/<employee>.json ({"employee", "name", "pay"}) for each employee, flags.md with one line "- <employee>: <flag>" for each flag sorted by employee (headings are free), ' +
        'and summary.json ({"employees": how many, "total_pay", "flags": how many}).',
      expected:
        'The agent applies rates by week, the newest overtime limit, absences and repeated rows, and writes payroll, payslips, flags and summary that agree.',
      truth: { slips: right, flags, total: money(sum(right.map((s) => s.pay))) },
      check: `
found = ws.records("payroll.csv", ["employee", "name", "hours", "overtime", "absence_hours", "pay"])
by = {row["employee"]: row for row in found or []}
slips = TRUTH["slips"]
def column(name, key):
    return share(same(at(by.get(slip["employee"]), name), slip[key]) for slip in slips)
lines = [line.strip() for line in ws.lines("flags.md") or []]
flags = [line for line in lines if line.startswith("- ")]
summary = ws.json("summary.json")
papers = {slip["employee"]: ws.json("payslips/%s.json" % slip["employee"]) for slip in slips}
pays = [number(row["pay"]) for row in found or []]
return {
    "employees": float(found is not None and [row["employee"] for row in found] == [slip["employee"] for slip in slips]),
    "hours": column("hours", "hours"),
    "overtime": column("overtime", "overtime"),
    "absence": column("absence_hours", "absence"),
    "pay": column("pay", "pay"),
    "payslips": share(same(papers[slip["employee"]], {key: slip[key] for key in ("employee", "name", "pay")}) for slip in slips),
    "flags": members(flags, TRUTH["flags"]),
    "total": float(close(at(summary, "total_pay"), TRUTH["total"])),
    "summary_counts": float(close(at(summary, "employees"), len(slips)) and close(at(summary, "flags"), len(TRUTH["flags"]))),
    "agree": float(bool(pays) and None not in pays and close(at(summary, "total_pay"), sum(pays), 0.02) and all(close(at(papers[id], "pay"), pay) for id, pay in zip(papers, pays))),
}`,
      reference: plan(right),
      wrong: {
        'old-limit': {
          why: 'the older amendment decides the overtime limit',
          ...plan(run({ threshold: oldLimit })),
        },
        'repeated-paid': {
          why: 'the repeated row is paid twice',
          ...plan(
            run({ twice: true }),
            flags.filter((flag) => !flag.includes('repeated')),
          ),
        },
        'first-rate': { why: 'the first rate is used for all weeks', ...plan(run({ oldRate: true })) },
        'absence-unpaid': { why: 'approved absences are not paid', ...plan(run({ absences: false })) },
      },
    };
  },
};
