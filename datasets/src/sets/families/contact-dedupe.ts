import { read, write } from '../../steps.js';
import { addDays, csv, json } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const FIRST = ['Alma', 'Boris', 'Celia', 'Dario', 'Edda', 'Farid', 'Greta', 'Hugo'];
const LAST = ['Norrell', 'Abadi', 'Costa', 'Winter', 'Duarte', 'Keller', 'Ona', 'Sato'];

/** A contact list with repeated people → one row each. Dominant mistake: addresses are compared with their capitals. */
export const contactDedupe: SetFamily = {
  name: 'contact-dedupe',
  domain: 'productivity',
  level: 'base',
  make(random) {
    const last = random.shuffle(LAST);
    const dates = random.shuffle(Array.from({ length: 40 }, (_, i) => addDays('2026-01-05', 3 * i)));
    const phone = (): string => `555-${1000 + random.below(9000)}`;
    const people = random.shuffle(FIRST).map((first, i) => ({
      name: `${first} ${last[i]!}`,
      email: `${first}.${last[i]!}@example.org`.toLowerCase(),
    }));
    const entries = random.shuffle(
      people.flatMap(({ name, email }, i) => {
        const copies = i < 2 ? 3 : i < 5 ? 2 : 1;
        // The newest copy of some has no phone number.
        const days = dates.splice(0, copies).sort().reverse();
        return days.map((updated, copy) => ({
          name: copy === 0 ? name : name.replace(/^(\w)\w+/, '$1.'),
          email: copy === 1 ? email.replace(/^./, (c) => c.toUpperCase()) : copy === 2 ? `${email} ` : email,
          phone: copy === 0 && copies > 1 && i % 2 === 0 ? '' : phone(),
          updated,
        }));
      }),
    );
    const clean = (options: { capitals?: boolean; oldest?: boolean; fill?: boolean } = {}): string[][] => {
      const groups = new Map<string, typeof entries>();
      for (const entry of entries) {
        const id = options.capitals ? entry.email : entry.email.trim().toLowerCase();
        groups.set(id, [...(groups.get(id) ?? []), entry]);
      }
      return [...groups.values()]
        .map((group) => {
          const sorted = [...group].sort((a, b) => (a.updated < b.updated ? 1 : -1));
          if (options.oldest) sorted.reverse();
          const top = sorted[0]!;
          const number = options.fill === false ? top.phone : (sorted.find((e) => e.phone)?.phone ?? '');
          return [top.name, top.email.trim().toLowerCase(), number, top.updated];
        })
        .sort((a, b) => (a[1]! < b[1]! ? -1 : 1));
    };
    const header = ['name', 'email', 'phone', 'updated'];
    const right = clean();
    const plan = (rows: string[][]): Plan => ({
      steps: [
        read('contacts.csv'),
        write('contacts_clean.csv', csv(header, rows)),
        write(
          'report.json',
          json({ before: entries.length, after: rows.length, removed: entries.length - rows.length }),
        ),
      ],
    });
    return {
      files: {
        'contacts.csv': csv(
          header,
          entries.map((e) => [e.name, e.email, e.phone, e.updated]),
        ),
      },
      query:
        'contacts.csv lists some people more than once: rows with the same email address, ignoring capitals and blanks around it, are one person. Write contacts_clean.csv with the same header and ' +
        'one row for each person: name and updated from the row with the latest updated, email in lower case without blanks, phone from the latest row that has one; sorted by email. ' +
        'Write report.json with the numbers of rows "before", "after" and "removed".',
      expected:
        'The agent groups rows by normalised address, merges each group by date and writes both files.',
      truth: {
        filled: right.filter((row, i) => row[2] !== clean({ fill: false })[i]![2]).map((row) => row[1]),
        rows: right,
        before: entries.length,
        after: right.length,
      },
      check: `
table = ws.table("contacts_clean.csv")
found = table[1] if table and table[0] == ["name", "email", "phone", "updated"] else None
wanted = {row[1]: row for row in TRUTH["rows"]}
by = {row[1]: row for row in found or []}
unique = found is not None and set(by) == set(wanted) and len(found) == len(wanted)
report = ws.json("report.json")
return {
    "header": float(found is not None),
    "one_row_each": float(unique),
    "names_and_dates": share(email in by and by[email][0] == row[0] and by[email][3] == row[3] for email, row in wanted.items()) if unique else 0.0,
    "phones": share(by[email][2] == row[2] for email, row in wanted.items()) if unique else 0.0,
    "phones_filled": float(unique and all(by[email][2] == wanted[email][2] for email in TRUTH["filled"])),
    "sorted": float(unique and [row[1] for row in found] == sorted(wanted)),
    "report": share(close(at(report, key), value) for key, value in [("before", TRUTH["before"]), ("after", TRUTH["after"]), ("removed", TRUTH["before"] - TRUTH["after"])]),
}`,
      reference: plan(right),
      wrong: {
        'capitals-differ': {
          why: 'addresses are compared with capitals and blanks',
          ...plan(clean({ capitals: true })),
        },
        'oldest-kept': { why: 'the oldest row of a person is kept', ...plan(clean({ oldest: true })) },
        'phone-lost': { why: 'a missing phone number is not filled in', ...plan(clean({ fill: false })) },
      },
    };
  },
};
