import { read, write } from '../../steps.js';
import { csv, json, lines, money, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const CUSTOMERS = ['Alder Works', 'Birch & Sons', 'Cedar Hall', 'Dogwood Ltd'];

interface Options {
  refunds?: number;
  utc?: boolean;
  once?: boolean;
  newNote?: boolean;
}

/** Invoices, payments and rates → ledger, exceptions, summary. Dominant mistake: local dates decide which month a payment is in. */
export const monthClose: SetFamily = {
  name: 'month-close',
  domain: 'analysis',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const rates = { EUR: 1, USD: 0.8 + random.below(150) / 1000, GBP: 1.1 + random.below(120) / 1000 };
    const currencies = Object.keys(rates) as (keyof typeof rates)[];
    const euro = (amount: number, currency: keyof typeof rates): number => money(amount * rates[currency]);
    const invoices = Array.from({ length: 12 }, (_, i) => ({
      id: `INV-${301 + i}`,
      office: i % 2 === 0 ? 'north' : 'south',
      customer: random.pick(CUSTOMERS),
      date: `2026-03-${String(2 + 2 * i).padStart(2, '0')}`,
      currency: currencies[i % 3]!,
      amount: (20_000 + random.below(60_000)) / 100,
    }));
    const [oldTolerance, tolerance] = [1, 5];
    let number = 700 + random.below(50);
    const pay = (
      i: number,
      part: number,
      options: { at?: string; kind?: string; less?: number; invoice?: string } = {},
    ) => ({
      id: `PAY-${++number}`,
      invoice: options.invoice ?? invoices[i]!.id,
      at: options.at ?? `2026-03-${String(10 + random.below(18))}T1${random.below(9)}:15+01:00`,
      currency: invoices[i]!.currency,
      amount: money(invoices[i]!.amount * part - (options.less ?? 0)),
      kind: options.kind ?? 'payment',
    });
    const bank = [
      pay(0, 1),
      pay(1, 0.5),
      pay(2, 1.25),
      pay(2, 0.25, { kind: 'refund' }),
      // Between the two tolerances: which note counts decides.
      pay(3, 1, { less: 3 }),
      // April where it was paid, March in UTC; and the other way round.
      pay(4, 1, { at: '2026-04-01T00:40+02:00' }),
      pay(5, 1, { at: '2026-03-31T22:30-04:00' }),
      pay(6, 0.4, { invoice: 'INV-399' }),
    ];
    const card = [
      pay(7, 1.5),
      pay(8, 1),
      pay(9, 0.3),
      pay(9, 0.3),
      pay(10, 1, { at: '2026-04-02T10:00+02:00' }),
    ];
    const doubled = [bank[1]!, bank[4]!];
    const all = [...bank, ...card].sort((a, b) => (a.id < b.id ? -1 : 1));
    const inMonth = (at: string, utc: boolean): boolean =>
      (utc ? new Date(Date.parse(at)).toISOString() : at).slice(0, 7) === '2026-03';
    const close = ({ refunds = -1, utc = true, once = true, newNote = true }: Options = {}) => {
      const counted = [...all, ...(once ? [] : doubled)].filter((p) => inMonth(p.at, utc));
      const limit = newNote ? tolerance : oldTolerance;
      const ledger = invoices.map((invoice) => {
        const amount = euro(invoice.amount, invoice.currency);
        const paid = money(
          sum(
            counted
              .filter((p) => p.invoice === invoice.id)
              .map((p) => euro(p.amount, p.currency) * (p.kind === 'refund' ? refunds : 1)),
          ),
        );
        const open = money(amount - paid);
        const status =
          Math.abs(open) <= limit ? 'settled' : paid === 0 ? 'unpaid' : open > 0 ? 'partial' : 'overpaid';
        return { invoice: invoice.id, customer: invoice.customer, amount, paid, open, status };
      });
      const exceptions = all.flatMap((p) => [
        ...(doubled.includes(p) && once ? [`- ${p.id}: duplicate`] : []),
        ...(!inMonth(p.at, utc) ? [`- ${p.id}: next month`] : []),
        ...(!invoices.some(({ id }) => id === p.invoice) ? [`- ${p.id}: unknown invoice ${p.invoice}`] : []),
      ]);
      const total = (key: 'amount' | 'paid' | 'open'): number => money(sum(ledger.map((row) => row[key])));
      const statuses = ['settled', 'partial', 'unpaid', 'overpaid'];
      return {
        ledger,
        exceptions,
        summary: {
          month: '2026-03',
          invoiced: total('amount'),
          paid: total('paid'),
          open: total('open'),
          counts: Object.fromEntries(
            statuses.map((name) => [name, ledger.filter((row) => row.status === name).length]),
          ),
        },
      };
    };
    const header = ['invoice', 'customer', 'amount_eur', 'paid_eur', 'open_eur', 'status'];
    const right = close();
    const payments = (list: typeof bank): string =>
      csv(
        ['payment', 'invoice', 'time', 'currency', 'amount', 'kind'],
        random.shuffle(list).map((p) => [p.id, p.invoice, p.at, p.currency, p.amount.toFixed(2), p.kind]),
      );
    const files = {
      ...Object.fromEntries(
        ['north', 'south'].map((office) => [
          `invoices/${office}.csv`,
          csv(
            ['invoice', 'customer', 'date', 'currency', 'amount'],
            invoices
              .filter((i) => i.office === office)
              .map((i) => [i.id, i.customer, i.date, i.currency, i.amount.toFixed(2)]),
          ),
        ]),
      ),
      'payments/bank.csv': payments(bank),
      'payments/card.csv': payments([...card, ...doubled]),
      'fx.csv': csv(
        ['month', 'currency', 'eur_per_unit'],
        currencies.flatMap((name) => [
          ['2026-02', name, (name === 'EUR' ? 1 : rates[name] + 0.021).toFixed(3)],
          ['2026-03', name, rates[name].toFixed(3)],
        ]),
      ),
      'notes/2026-02-20.md': lines(
        '# Closing notes',
        '',
        `- Tolerance for settled invoices: ${oldTolerance.toFixed(2)} EUR.`,
      ),
      'notes/2026-03-28.md': lines(
        '# Closing notes',
        '',
        `- Bank fees went up: the tolerance is now ${tolerance.toFixed(2)} EUR.`,
      ),
      'policy.md': lines(
        '# Monthly close',
        '',
        '1. Every amount is converted to EUR by the rate of the month being closed and rounded to 2 decimals (halves up) before anything is added up.',
        '2. A payment belongs to the month of its time in UTC. Payments of a later month do not count; they are exceptions ("next month").',
        '3. A payment number that stands in both payment files is one payment, and an exception ("duplicate").',
        '4. Payments for an invoice that does not exist are exceptions ("unknown invoice") and do not count.',
        '5. A refund lowers what was paid.',
        '6. Open is amount minus paid. Status: "settled" if open, upwards or downwards, is at most the tolerance of the newest note; otherwise "unpaid" if paid is 0, "partial" if open is above 0, "overpaid" if below.',
      ),
    };
    const plan = (result: typeof right, summary: object = result.summary): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        write(
          'ledger.csv',
          csv(
            header,
            result.ledger.map((r) => [
              r.invoice,
              r.customer,
              r.amount.toFixed(2),
              r.paid.toFixed(2),
              r.open.toFixed(2),
              r.status,
            ]),
          ),
        ),
        write('exceptions.md', lines('# Exceptions', '', ...result.exceptions)),
        write('summary.json', json(summary)),
      ],
    });
    return {
      files,
      query:
        'Close the month 2026-03 following policy.md, with the files in invoices/, payments/ and notes/ and fx.csv. Write three files that agree with each other. ' +
        'ledger.csv: header invoice,customer,amount_eur,paid_eur,open_eur,status, one row for each invoice sorted by invoice, amounts with 2 decimals. ' +
        'exceptions.md: one line "- <payment>: duplicate", "- <payment>: next month" or "- <payment>: unknown invoice <invoice>" for each exception, sorted by payment; headings are free. ' +
        'summary.json: {"month", "invoiced", "paid", "open": sums of the columns of the ledger, "counts": {"settled", "partial", "unpaid", "overpaid": how many invoices}}.',
      expected:
        'The agent converts all amounts, counts each March payment (in UTC) once, applies the newest tolerance, and writes ledger, exceptions and summary that agree.',
      truth: { ledger: right.ledger, exceptions: right.exceptions, summary: right.summary },
      check: `
found = ws.records("ledger.csv", ["invoice", "customer", "amount_eur", "paid_eur", "open_eur", "status"])
by = {row["invoice"]: row for row in found or []}
wanted = TRUTH["ledger"]
def column(name, key):
    return share(same(at(by.get(row["invoice"]), name), row[key]) for row in wanted)
lines = ws.lines("exceptions.md") or []
exceptions = [line.strip() for line in lines if line.strip().startswith("- ")]
summary = ws.json("summary.json")
opens = [number(row["open_eur"]) for row in found or []]
return {
    "invoices": float(found is not None and [row["invoice"] for row in found] == [row["invoice"] for row in wanted]),
    "customers": column("customer", "customer"),
    "amounts": column("amount_eur", "amount"),
    "paid": column("paid_eur", "paid"),
    "open": column("open_eur", "open"),
    "status": column("status", "status"),
    "exceptions": members(exceptions, TRUTH["exceptions"]),
    "exceptions_order": float(exceptions == TRUTH["exceptions"]),
    "sums": share(close(at(summary, key), TRUTH["summary"][key]) for key in ("invoiced", "paid", "open")),
    "counts": float(same(at(summary, "counts"), TRUTH["summary"]["counts"]) and at(summary, "month") == "2026-03"),
    "agree": float(bool(opens) and None not in opens and close(at(summary, "open"), sum(opens), 0.02)),
}`,
      reference: plan(right),
      wrong: {
        'local-dates': {
          why: 'local dates decide which month a payment is in',
          ...plan(close({ utc: false })),
        },
        'duplicates-counted': { why: 'payments in both files count twice', ...plan(close({ once: false })) },
        'old-note': { why: 'the tolerance of the older note is used', ...plan(close({ newNote: false })) },
        'refund-added': { why: 'the refund is added to what was paid', ...plan(close({ refunds: 1 })) },
      },
    };
  },
};
