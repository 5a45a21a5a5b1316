import { read, write } from '../../steps.js';
import { csv, json, lines, money, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const ITEMS = ['gloves', 'tape', 'labels', 'boxes', 'foil', 'pens', 'hooks', 'bulbs', 'rope'];
const SUPPLIERS = ['harbour-supply', 'northline', 'quickpack'];
const DEPOTS = ['east', 'west'];
const MONTHS = ['2026-01', '2026-02', '2026-03'];

interface Options {
  incoming?: boolean;
  packs?: boolean;
  newCover?: boolean;
  returns?: boolean;
  minimum?: boolean;
}

/** Stock, sales, deliveries and a policy → orders by supplier. Dominant mistake: goods already on their way are not subtracted. */
export const stockReorder: SetFamily = {
  name: 'stock-reorder',
  domain: 'planning',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const [oldCover, cover] = [2, 3];
    const items = random.shuffle(ITEMS).map((name, i) => ({
      sku: `K${201 + 3 * i}`,
      name,
      supplier: SUPPLIERS[i % 3]!,
      pack: [6, 10, 12][random.below(3)]!,
      price: (150 + random.below(900)) / 100,
      status: i === 5 ? 'discontinued' : 'active',
    }));
    const sales = MONTHS.flatMap((month) =>
      items.flatMap(({ sku }, i) => [
        { month, sku, quantity: 20 + random.below(40) },
        ...(i % 4 === 1 ? [{ month, sku, quantity: -(5 + random.below(6)) }] : []),
      ]),
    );
    const stock = DEPOTS.flatMap((depot, d) =>
      items.map(({ sku }, i) => ({ depot, sku, quantity: i === 7 ? 150 : 6 + 4 * d + random.below(20) })),
    );
    const incoming = [
      { sku: items[0]!.sku, quantity: 24, status: 'confirmed' },
      { sku: items[4]!.sku, quantity: 30, status: 'cancelled' },
      { sku: items[8]!.sku, quantity: 18, status: 'confirmed' },
    ];
    const order = (
      {
        incoming: way = true,
        packs = true,
        newCover = true,
        returns = true,
        minimum: held = true,
      }: Options = {},
      least?: number,
    ) => {
      const rows = items
        .filter((item) => item.status === 'active')
        .map((item) => {
          const sold = sum(
            sales.filter((s) => s.sku === item.sku && (returns || s.quantity > 0)).map((s) => s.quantity),
          );
          const target = Math.ceil((sold * (newCover ? cover : oldCover)) / MONTHS.length);
          const there = sum(stock.filter((s) => s.sku === item.sku).map((s) => s.quantity));
          const coming = way
            ? sum(
                incoming.filter((s) => s.sku === item.sku && s.status === 'confirmed').map((s) => s.quantity),
              )
            : 0;
          const need = Math.max(0, target - there - coming);
          const quantity = packs ? Math.ceil(need / item.pack) * item.pack : need;
          return { ...item, target, quantity, cost: money(quantity * item.price) };
        })
        .filter(({ quantity }) => quantity > 0)
        .sort((a, b) => (a.sku < b.sku ? -1 : 1));
      const totals = SUPPLIERS.map((name) => ({
        name,
        value: money(sum(rows.filter((r) => r.supplier === name).map((r) => r.cost))),
      }));
      const postponed =
        held && least !== undefined
          ? totals.filter(({ value }) => value > 0 && value < least).map(({ name }) => name)
          : [];
      return { rows, totals, postponed };
    };
    // The smallest order stays below the minimum by a clear margin, the others above.
    const values = order()
      .totals.map(({ value }) => value)
      .sort((a, b) => a - b);
    const least = Math.round((values[0]! + values[1]!) / 2);
    const right = order({}, least);
    const files = {
      ...Object.fromEntries(
        DEPOTS.map((depot) => [
          `stock/${depot}.csv`,
          csv(
            ['sku', 'quantity'],
            random.shuffle(stock.filter((s) => s.depot === depot)).map((s) => [s.sku, s.quantity]),
          ),
        ]),
      ),
      ...Object.fromEntries(
        MONTHS.map((month) => [
          `sales/${month}.csv`,
          csv(
            ['sku', 'quantity'],
            random.shuffle(sales.filter((s) => s.month === month)).map((s) => [s.sku, s.quantity]),
          ),
        ]),
      ),
      'catalogue.csv': csv(
        ['sku', 'name', 'supplier', 'pack', 'price', 'status'],
        items.map((i) => [i.sku, i.name, i.supplier, i.pack, i.price.toFixed(2), i.status]),
      ),
      'deliveries.csv': csv(
        ['sku', 'quantity', 'status'],
        incoming.map((i) => [i.sku, i.quantity, i.status]),
      ),
      'memos/2025-11-03.md': lines(
        '# Memo',
        '',
        `Cover: ${oldCover} months.`,
        `Least value of an order to one supplier: ${least}.`,
      ),
      'memos/2026-03-30.md': lines(
        '# Memo',
        '',
        `Spring is busy. Cover is raised to ${cover} months; all else stays.`,
      ),
      'policy.md': lines(
        '# Reordering',
        '',
        '1. Discontinued items are not ordered.',
        '2. Monthly sales are the mean of the three months; negative quantities are returns and lower the sales.',
        '3. The target is monthly sales times the cover (newest memo), rounded up to a whole number.',
        '4. Needed is the target minus the stock of both depots minus confirmed deliveries on their way; what is above 0 is ordered, rounded up to whole packs.',
        '5. If the order to a supplier is worth less than the least value (quantity times price of all its items), it is postponed: nothing is ordered from that supplier.',
      ),
    };
    const placed = (result: typeof right): typeof right.rows =>
      result.rows.filter((r) => !result.postponed.includes(r.supplier));
    const plan = (result: typeof right): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        ...SUPPLIERS.filter((name) => placed(result).some((r) => r.supplier === name)).map((name) =>
          write(
            `orders/${name}.csv`,
            csv(
              ['sku', 'quantity', 'cost'],
              placed(result)
                .filter((r) => r.supplier === name)
                .map((r) => [r.sku, r.quantity, r.cost.toFixed(2)]),
            ),
          ),
        ),
        write(
          'targets.csv',
          csv(
            ['sku', 'target'],
            result.rows.map((r) => [r.sku, r.target]),
          ),
        ),
        write(
          'plan.json',
          json({
            orders: Object.fromEntries(
              result.totals
                .filter((t) => placed(result).some((r) => r.supplier === t.name))
                .map((t) => [t.name, t.value]),
            ),
            postponed: result.postponed,
            total: money(sum(placed(result).map((r) => r.cost))),
          }),
        ),
      ],
    });
    const orders = Object.fromEntries(
      SUPPLIERS.filter((name) => !right.postponed.includes(name)).map((name) => [
        name,
        placed(right)
          .filter((r) => r.supplier === name)
          .map((r) => [r.sku, r.quantity, r.cost]),
      ]),
    );
    return {
      files,
      query:
        'Work out what to reorder following policy.md and the memos, from catalogue.csv, stock/, sales/ and deliveries.csv. Write targets.csv (header sku,target: every item of which something is needed, also of postponed suppliers, sorted by sku), orders/<supplier>.csv for each supplier that gets an order ' +
        '(header sku,quantity,cost; sorted by sku; cost is quantity times price, 2 decimals) and plan.json: {"orders": an object from each supplier that gets an order to the sum of its costs, "postponed": alphabetical list of postponed suppliers, "total": sum of all orders}. Put nothing else into orders/.',
      expected:
        'The agent computes targets with the newest cover, subtracts stock and confirmed deliveries, rounds to packs, postpones small orders and writes files that agree.',
      truth: {
        orders,
        targets: right.rows.map((r) => [r.sku, r.target]),
        postponed: right.postponed,
        values: Object.fromEntries(right.totals.map((t) => [t.name, t.value])),
      },
      check: `
def rows(name, header):
    table = ws.table(name)
    return table[1] if table and table[0] == header else None
orders = {name: rows("orders/%s.csv" % name, ["sku", "quantity", "cost"]) for name in TRUTH["orders"]}
plan = ws.json("plan.json")
targets = rows("targets.csv", ["sku", "target"])
every = [row for own in orders.values() for row in own or []]
wanted = [row for own in TRUTH["orders"].values() for row in own]
sums = {name: TRUTH["values"][name] for name in orders}
costs = [number(row[2]) for row in every]
return {
    "targets": members(targets, TRUTH["targets"]),
    "targets_sorted": float(same(targets, TRUTH["targets"])),
    "items": members([row[0] for row in every], [row[0] for row in wanted]),
    "quantities": members([row[:2] for row in every], [row[:2] for row in wanted]),
    "orders": share(same(orders[name], own) for name, own in TRUTH["orders"].items()),
    "nothing_else": float(bool(every) and set(ws.files("orders")) == {"orders/%s.csv" % name for name in orders}),
    "postponed": float(same(at(plan, "postponed"), TRUTH["postponed"])),
    "sums": float(same(at(plan, "orders"), sums)),
    "total": float(close(at(plan, "total"), sum(sums.values()))),
    "agree": float(bool(costs) and None not in costs and close(at(plan, "total"), sum(costs), 0.02)),
}`,
      reference: plan(right),
      wrong: {
        'deliveries-forgotten': {
          why: 'goods already on their way are not subtracted',
          ...plan(order({ incoming: false }, least)),
        },
        'no-packs': {
          why: 'quantities are not rounded up to packs',
          ...plan(order({ packs: false }, least)),
        },
        'old-cover': {
          why: 'the cover of the older memo is used',
          ...plan(order({ newCover: false }, least)),
        },
        'small-order-placed': {
          why: 'the order below the least value is placed',
          ...plan(order({ minimum: false }, least)),
        },
        'returns-dropped': {
          why: 'returns are left out of the sales',
          ...plan(order({ returns: false }, least)),
        },
      },
    };
  },
};
