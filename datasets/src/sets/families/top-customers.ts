import { read, write } from '../../steps.js';
import { csv, lines, money, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const NAMES = [
  'Alder Works',
  'Birch & Sons',
  'Cedar Hall',
  'Dogwood Ltd',
  'Elm Trading',
  'Fir Foods',
  'Gorse Bros',
];
const REGIONS = ['coast', 'valley', 'hills'];

/** Orders × customers → the three best customers. Dominant mistake: cancelled orders are added up too. */
export const topCustomers: SetFamily = {
  name: 'top-customers',
  domain: 'analysis',
  level: 'base',
  make(random) {
    const customers = random
      .shuffle(NAMES)
      .map((name, i) => ({ id: `C${31 + 4 * i}`, name, region: random.pick(REGIONS), scale: 900 - 110 * i }));
    const ids = [...customers, ...customers, ...customers, ...customers.slice(0, 4)].map(({ id }) => id);
    const orders = random.shuffle([...ids, 'C97', 'C98']).map((customer, i) => ({
      order: `A-${2001 + i}`,
      customer,
      // Spread by customer, so that totals stay apart.
      amount: money(
        (customers.find(({ id }) => id === customer)?.scale ?? 400) * (0.95 + random.below(10) / 100) +
          random.below(99) / 100,
      ),
      status: random.below(4) === 0 ? 'open' : 'paid',
    }));
    orders.find(({ customer }) => customer === customers[0]!.id)!.status = 'open';
    // A cancelled order large enough to change the list.
    const fifth = orders.find(({ customer }) => customer === customers[4]!.id)!;
    Object.assign(fifth, { amount: fifth.amount + 4000, status: 'cancelled' });
    const rank = (keep: (status: string) => boolean): (string | number)[][] =>
      customers
        .map(({ id, name, region }) => ({
          name,
          region,
          total: money(sum(orders.filter((o) => o.customer === id && keep(o.status)).map((o) => o.amount))),
        }))
        .sort((a, b) => b.total - a.total)
        .slice(0, 3)
        .map(({ name, region, total }, i) => [i + 1, name, region, total.toFixed(2)]);
    const right = rank((status) => status !== 'cancelled');
    const known = new Set(customers.map(({ id }) => id));
    const unmatched = orders.filter((o) => !known.has(o.customer)).map(({ order }) => order);
    const header = ['rank', 'customer', 'region', 'total'];
    const plan = (rows: (string | number)[][], missing = unmatched): Plan => ({
      steps: [
        read('orders.csv'),
        read('customers.csv'),
        write('top.csv', csv(header, rows)),
        write('unmatched.txt', lines(...missing)),
      ],
    });
    return {
      files: {
        'orders.csv': csv(
          ['order', 'customer_id', 'amount', 'status'],
          orders.map((o) => [o.order, o.customer, o.amount.toFixed(2), o.status]),
        ),
        'customers.csv': csv(
          ['id', 'name', 'region'],
          [...customers].sort((a, b) => (a.name < b.name ? -1 : 1)).map((c) => [c.id, c.name, c.region]),
        ),
      },
      query:
        'orders.csv refers to customers.csv by customer_id. Add up the amounts of each known customer, leaving out orders whose status is "cancelled". ' +
        'Write top.csv with the header rank,customer,region,total for the three customers with the largest totals (rank 1 is the largest; customer is the name; ' +
        'total with 2 decimals). Write unmatched.txt with the orders whose customer_id is not in customers.csv, one order number per line in the order of orders.csv.',
      expected:
        'The agent joins the two tables, leaves out cancelled orders, and writes the three largest customers and the list of orders without a customer.',
      truth: { rows: right.map(([a, b, c, d]) => [a, b, c, Number(d)]), unmatched },
      check: `
table = ws.table("top.csv")
found = table[1] if table and table[0] == ["rank", "customer", "region", "total"] else None
cells = [list(column) for column in zip(*found)] if found else [None] * 4
wanted = [list(column) for column in zip(*TRUTH["rows"])]
return {
    "header": float(found is not None),
    "ranks": float(same(cells[0], wanted[0])),
    "customers": places(cells[1], wanted[1]),
    "regions": places(cells[2], wanted[2]) if cells[1] == wanted[1] else 0.0,
    "totals": places(cells[3], wanted[3]),
    "unmatched": float(ws.lines("unmatched.txt") == TRUTH["unmatched"]),
}`,
      reference: plan(right),
      wrong: {
        'cancelled-counted': { why: 'cancelled orders are added up too', ...plan(rank(() => true)) },
        'paid-only': {
          why: 'open orders are left out as well',
          ...plan(rank((status) => status === 'paid')),
        },
        'unmatched-ids': {
          why: 'unmatched.txt lists customer ids instead of orders',
          ...plan(right, ['C97', 'C98']),
        },
      },
    };
  },
};
