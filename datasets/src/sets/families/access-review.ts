import { read, write } from '../../steps.js';
import { addDays, csv, json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const SYSTEMS = ['crm', 'vault', 'wiki'];
const DEPARTMENTS = ['sales', 'support', 'finance'];
const LOGINS = ['akoch', 'bsand', 'cmora', 'dlund', 'eboyd', 'fkaya', 'gpohl', 'hruiz', 'isolo', 'jmint'];
const ALLOWED: Record<string, readonly string[]> = {
  sales: ['reader', 'editor'],
  support: ['reader'],
  finance: ['reader', 'editor', 'approver'],
};

interface Options {
  expired?: boolean;
  capitals?: boolean;
  leaversExempt?: boolean;
  allReasons?: boolean;
}

/** Accounts of three systems against the staff list and a policy. Dominant mistake: expired exceptions still count. */
export const accessReview: SetFamily = {
  name: 'access-review',
  domain: 'systems',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const today = addDays('2026-07-01', random.below(40));
    const logins = random.shuffle(LOGINS);
    const staff = logins.map((login, i) => ({
      login,
      department: DEPARTMENTS[i % 3]!,
      // The last three have left: one long ago, one yesterday, one only next week.
      left: i === 7 ? addDays(today, -90) : i === 8 ? addDays(today, -1) : i === 9 ? addDays(today, 7) : '',
    }));
    const limit = 60 + 10 * random.below(4);
    const accounts = SYSTEMS.flatMap((system, s) => [
      ...staff
        .filter((_, i) => (i + s) % 4 !== 3 || i === 8)
        .map(({ login, department }, i) => ({
          system,
          login: (i + s) % 5 === 2 ? login.toUpperCase() : login,
          role: (i + s) % 4 === 1 ? 'admin' : random.pick(ALLOWED[department]!),
          used: addDays(
            today,
            -((i + 2 * s) % 5 === 0 ? limit + 1 + random.below(90) : random.below(limit + 1)),
          ),
        })),
      { system, login: `${system}-robot`, role: 'editor', used: addDays(today, -random.below(20)) },
    ]);
    const id = (a: { system: string; login: string }): string => `${a.system}/${a.login.toLowerCase()}`;
    const plainFinding = (
      a: (typeof accounts)[number],
      exempt: (key: string) => boolean,
      options: Options,
    ): string[] => {
      const person = staff.find(
        ({ login }) => login === (options.capitals ? a.login : a.login.toLowerCase()),
      );
      if (!person) return ['unknown'];
      const free = exempt(id(a));
      if (person.left && person.left < today && !(free && options.leaversExempt)) return ['left'];
      if (free) return [];
      return [
        ...(ALLOWED[person.department]!.includes(a.role) ? [] : ['role']),
        ...(Date.parse(today) - Date.parse(a.used) > limit * 86_400_000 ? ['unused'] : []),
      ];
    };
    // One account has two reasons; no exception is drawn for it.
    const twofold = accounts.find(
      (a) => a.role === 'admin' && staff.some((p) => p.login === a.login && p.left === ''),
    )!;
    twofold.used = addDays(today, -limit - 20);
    const flagged = accounts.filter(
      (a) => a !== twofold && plainFinding(a, () => false, {}).some((f) => f !== 'unknown'),
    );
    const leaver = flagged.find((a) => plainFinding(a, () => false, {})[0] === 'left')!;
    const stayers = random.shuffle(flagged.filter((a) => plainFinding(a, () => false, {})[0] !== 'left'));
    const exceptions = [
      { account: stayers[0]!, until: addDays(today, 30) },
      { account: stayers[1]!, until: today },
      { account: stayers[2]!, until: addDays(today, -1) },
      { account: stayers[3]!, until: addDays(today, -45) },
      { account: leaver, until: addDays(today, 60) },
    ];
    const ACTIONS: Record<string, string> = {
      unknown: 'revoke',
      left: 'revoke',
      role: 'downgrade',
      unused: 'disable',
    };
    const review = (options: Options = {}): string[][] => {
      const exempt = (key: string): boolean =>
        exceptions.some((e) => id(e.account) === key && (options.expired || e.until >= today));
      return accounts
        .flatMap((a) => {
          const found = plainFinding(a, exempt, options);
          return (options.allReasons ? found : found.slice(0, 1)).map((f) => [
            a.system,
            a.login.toLowerCase(),
            f,
            ACTIONS[f]!,
          ]);
        })
        .sort((a, b) => (a.join('/') < b.join('/') ? -1 : 1));
    };
    const right = review();
    const files = {
      ...Object.fromEntries(
        SYSTEMS.map((system) => [
          `systems/${system}.csv`,
          csv(
            ['login', 'role', 'last_used'],
            random.shuffle(accounts.filter((a) => a.system === system)).map((a) => [a.login, a.role, a.used]),
          ),
        ]),
      ),
      'people.csv': csv(
        ['login', 'department', 'left_on'],
        staff.map((p) => [p.login, p.department, p.left]),
      ),
      'roles.csv': csv(
        ['department', 'allowed_roles'],
        DEPARTMENTS.map((name) => [name, ALLOWED[name]!.join(';')]),
      ),
      'exceptions.csv': csv(
        ['system', 'login', 'valid_until'],
        random.shuffle(exceptions).map((e) => [e.account.system, e.account.login.toLowerCase(), e.until]),
      ),
      'policy.md': lines(
        '# Access review',
        '',
        'Logins are compared without regard to capitals. An account has at most one finding: the first that fits.',
        '',
        '1. "unknown": the login is not in people.csv. Action: revoke.',
        '2. "left": the person left before today. Action: revoke. Exceptions do not help.',
        '3. "role": the role is not allowed for the department. Action: downgrade. Not with a valid exception.',
        `4. "unused": last used more than ${limit} days ago. Action: disable. Not with a valid exception.`,
        '',
        'An exception is valid up to and including the day valid_until.',
      ),
    };
    const plan = (rows: string[][]): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        write('findings.csv', csv(['system', 'login', 'finding', 'action'], rows)),
        ...SYSTEMS.map((system) =>
          write(
            `revoke/${system}.txt`,
            lines(...rows.filter((r) => r[0] === system && r[3] === 'revoke').map((r) => r[1]!)),
          ),
        ),
        write(
          'summary.json',
          json({
            reviewed: accounts.length,
            findings: rows.length,
            by_action: Object.fromEntries(
              ['revoke', 'downgrade', 'disable'].map((a) => [a, rows.filter((r) => r[3] === a).length]),
            ),
          }),
        ),
      ],
    });
    return {
      files,
      query:
        `Today is ${today}. Review the accounts of systems/*.csv following policy.md with people.csv, roles.csv and exceptions.csv. Write findings.csv (header system,login,finding,action; system without ".csv", login in lower case; ` +
        'sorted by system, then login), revoke/<system>.txt for each system (the logins to revoke there, one per line, in the order of findings.csv) and summary.json ({"reviewed": number of accounts, "findings": number of findings, ' +
        '"by_action": {"revoke", "downgrade", "disable": how many}}).',
      expected:
        'The agent matches accounts with staff, applies the policy in order with valid exceptions only, and writes findings, revocation lists and counts that agree.',
      truth: { rows: right, systems: SYSTEMS, reviewed: accounts.length },
      check: `
table = ws.table("findings.csv")
rows = table[1] if table and table[0] == ["system", "login", "finding", "action"] else None
wanted = TRUTH["rows"]
summary = ws.json("summary.json")
actions = ["revoke", "downgrade", "disable"]
def of(kind):
    return members([row for row in rows or [] if row[2] == kind], [row for row in wanted if row[2] == kind])
def revoked(source, system):
    return [row[1] for row in source if row[0] == system and row[3] == "revoke"]
lists = {system: [line for line in ws.lines("revoke/%s.txt" % system) or [] if line] for system in TRUTH["systems"]}
scores = {kind: of(kind) for kind in ("unknown", "left", "role", "unused")}
scores["order"] = float(same(rows, wanted))
scores["revoke_lists"] = share(lists[system] == revoked(wanted, system) for system in lists)
scores["reviewed"] = float(close(at(summary, "reviewed"), TRUTH["reviewed"]))
scores["counts"] = float(close(at(summary, "findings"), len(wanted)) and same(at(summary, "by_action"), {name: sum(row[3] == name for row in wanted) for name in actions}))
scores["agree"] = float(bool(rows) and close(at(summary, "findings"), len(rows)) and all(lists[system] == revoked(rows, system) for system in lists))
return scores`,
      reference: plan(right),
      wrong: {
        'expired-count': { why: 'expired exceptions still count', ...plan(review({ expired: true })) },
        'capitals-differ': {
          why: 'logins in capitals are taken for unknown',
          ...plan(review({ capitals: true })),
        },
        'leaver-exempt': {
          why: 'an exception saves the account of somebody who left',
          ...plan(review({ leaversExempt: true })),
        },
        'all-reasons': {
          why: 'an account gets a row for every reason',
          ...plan(review({ allReasons: true })),
        },
      },
    };
  },
};
