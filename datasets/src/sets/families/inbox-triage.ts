import { read, write } from '../../steps.js';
import { json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const OWN = 'lumenfold.example';
const OUTSIDE = ['harbor.example', 'quillmart.example', 'brightway.example'];
const PEOPLE = ['ada', 'bruno', 'chen', 'dora', 'emre', 'fay'];

interface Mail {
  id: string;
  from: string;
  subject: string;
  body: string;
}

/** Mails and a policy whose first matching rule decides → triage. Dominant mistake: rules are not applied in their order. */
export const inboxTriage: SetFamily = {
  name: 'inbox-triage',
  domain: 'productivity',
  level: 'base',
  make(random) {
    const limit = 500 * (1 + random.below(4));
    const outside = (): string => `${random.pick(PEOPLE)}@${random.pick(OUTSIDE)}`;
    const own = (): string => `${random.pick(PEOPLE)}@${OWN}`;
    const blocked = ['offers@cheapdeals.example', 'win@prizebox.example'];
    const amount = (over: boolean): string =>
      `The amount is ${over ? limit + 10 * random.below(40) : limit - 10 * (1 + random.below(20))} EUR.`;
    const drafts: [from: string, subject: string, body: string][] = [
      [outside(), 'Invoice for March', amount(true)],
      [outside(), 'Your INVOICE is attached', amount(false)],
      [blocked[0]!, 'Unpaid invoice!', amount(true)],
      [own(), 'Refund for the chairs', amount(false)],
      [outside(), 'Outage in the east wing', 'Nothing works since nine.'],
      [own(), 'Printer is down', 'Second floor.'],
      [outside(), 'Countdown to the trade fair', 'Ten days left.'],
      [own(), 'Lunch on Friday', 'Who joins?'],
      [outside(), 'Question about opening hours', 'Are you open on Saturday?'],
      [blocked[1]!, 'You won', 'Click here.'],
      [outside(), 'Refund during the outage', amount(true)],
    ];
    const mails: Mail[] = random
      .shuffle(drafts)
      .map(([from, subject, body], i) => ({ id: `m${String(i + 1).padStart(2, '0')}`, from, subject, body }));
    type Rule = (mail: Mail) => { queue: string; priority: string } | null;
    const discard: Rule = (m) => (blocked.includes(m.from) ? { queue: 'discard', priority: 'none' } : null);
    const finance: Rule = (m) =>
      /invoice|refund/i.test(m.subject)
        ? { queue: 'finance', priority: Number(/\d+/.exec(m.body)![0]) >= limit ? 'high' : 'normal' }
        : null;
    const operations =
      (pattern: RegExp): Rule =>
      (m) =>
        pattern.test(m.subject) ? { queue: 'operations', priority: 'high' } : null;
    const internal: Rule = (m) =>
      m.from.endsWith(`@${OWN}`) ? { queue: 'internal', priority: 'low' } : null;
    const rest: Rule = () => ({ queue: 'front-desk', priority: 'normal' });
    const words = operations(/\b(outage|down)\b/i);
    const triage = (...rules: Rule[]): object[] =>
      mails.map((mail) => ({ id: mail.id, ...rules.map((rule) => rule(mail)).find((hit) => hit !== null) }));
    const right = triage(discard, finance, words, internal, rest);
    const plan = (answer: object): Plan => ({
      steps: [read('policy.md'), read('inbox.json'), write('triage.json', json(answer))],
    });
    const of = (test: (m: Mail) => boolean): string[] => mails.filter(test).map(({ id }) => id);
    return {
      files: {
        'inbox.json': json(mails),
        'policy.md': lines(
          '# Triage policy',
          '',
          'The first rule that matches decides.',
          '',
          `1. Sender is ${blocked.join(' or ')}: queue "discard", priority "none".`,
          `2. Subject contains "invoice" or "refund" in any case: queue "finance"; priority "high" if the body names ${limit} EUR or more, else "normal".`,
          '3. Subject contains the word "outage" or "down" in any case, as a word of its own: queue "operations", priority "high".',
          `4. Sender's address ends with @${OWN}: queue "internal", priority "low".`,
          '5. Everything else: queue "front-desk", priority "normal".',
        ),
      },
      query:
        'Sort the mails of inbox.json by policy.md. Write triage.json: an array with one object {"id", "queue", "priority"} for each mail, in the order of inbox.json.',
      expected:
        'The agent applies the first matching rule of the policy to each mail and writes triage.json.',
      truth: {
        mails: right,
        groups: {
          finance: of((m) => /invoice|refund/i.test(m.subject)),
          blocked: of((m) => blocked.includes(m.from)),
          words: of((m) => /outage|down/i.test(m.subject)),
          own: of((m) => m.from.endsWith(OWN)),
        },
      },
      check: `
found = ws.json("triage.json")
by = {entry["id"]: entry for entry in found if isinstance(at(entry, "id"), str)} if isinstance(found, list) else {}
right = {entry["id"]: same(by.get(entry["id"]), entry) for entry in TRUTH["mails"]}
scores = {name: float(all(right[id] for id in ids)) for name, ids in TRUTH["groups"].items()}
scores["mails"] = share(right.values())
scores["order"] = float(bool(by) and [at(entry, "id") for entry in found] == list(right))
return scores`,
      reference: plan(right),
      wrong: {
        'order-ignored': {
          why: 'rules are tried from the sender on, not in the order of the policy',
          ...plan(triage(discard, internal, words, finance, rest)),
        },
        'part-of-word': {
          why: '"down" is found inside "countdown"',
          ...plan(triage(discard, finance, operations(/outage|down/i), internal, rest)),
        },
        'blocked-ignored': {
          why: 'blocked senders are treated like others',
          ...plan(triage(finance, words, internal, discard, rest)),
        },
      },
    };
  },
};
