import { read, write } from '../../steps.js';
import { csv, json, money, sum } from '../text.js';
import type { SetFamily } from '../set-task.js';

const REGIONS = ['North', 'South', 'East', 'West'];
const PRODUCTS = ['desk', 'chair', 'lamp', 'shelf', 'monitor arm'];

/** Orders → totals by region and the best product; refunds count negative. Dominant mistake: refunds are added. */
export const salesSummary: SetFamily = {
  name: 'sales-summary',
  domain: 'analysis',
  level: 'base',
  make(random) {
    const orders = Array.from({ length: 18 + random.below(8) }, (_, i) => ({
      id: `O-${1001 + i}`,
      // Every region occurs; the rest is drawn.
      region: i < REGIONS.length ? REGIONS[i]! : random.pick(REGIONS),
      product: i < PRODUCTS.length ? PRODUCTS[i]! : random.pick(PRODUCTS),
      quantity: 1 + random.below(9),
      price: (500 + random.below(20_000)) / 100,
      kind: i % 6 === 5 ? 'refund' : 'sale',
    }));
    const amount = (o: (typeof orders)[number], refunds = -1): number =>
      Math.round(o.quantity * o.price * 100 * (o.kind === 'refund' ? refunds : 1)) / 100;
    const summarise = (refunds: number): { regions: Record<string, number>; total: number; best: string } => {
      const by = (key: 'region' | 'product', name: string): number =>
        money(sum(orders.filter((o) => o[key] === name).map((o) => amount(o, refunds))));
      const products = PRODUCTS.map((name) => ({ name, value: by('product', name) }));
      return {
        regions: Object.fromEntries(REGIONS.map((name) => [name, by('region', name)])),
        total: money(sum(orders.map((o) => amount(o, refunds)))),
        best: products.reduce((a, b) => (b.value > a.value ? b : a)).name,
      };
    };
    const right = summarise(-1);
    const answer = (s: typeof right): string =>
      json({ total: s.total, by_region: s.regions, best_product: s.best });
    const orderFile = csv(
      ['order', 'region', 'product', 'quantity', 'unit_price', 'kind'],
      orders.map((o) => [o.id, o.region, o.product, o.quantity, o.price.toFixed(2), o.kind]),
    );
    const look = read('orders.csv');
    return {
      files: { 'orders.csv': orderFile },
      query:
        'orders.csv lists orders; the amount of an order is quantity × unit_price, and an order of kind "refund" counts with a negative amount. ' +
        'Write summary.json: an object with "total" (sum of all amounts), "by_region" (an object from each region to its sum) and ' +
        '"best_product" (the product with the largest sum). Round sums to 2 decimals. Leave orders.csv as it is.',
      expected:
        'The agent reads orders.csv, adds up amounts with refunds negative, and writes summary.json with the three keys. It does not change the input.',
      truth: { ...right, input: orderFile },
      check: `
found = ws.json("summary.json")
regions = at(found, "by_region")
names = set(regions) if isinstance(regions, dict) else set()
kept = ws.text("orders.csv") == TRUTH["input"]
return {
    "total": float(close(at(found, "total"), TRUTH["total"])),
    "regions_named": float(names == set(TRUTH["regions"])),
    "regions": share(close(at(regions, name), value) for name, value in TRUTH["regions"].items()),
    "best_product": float(at(found, "best_product") == TRUTH["best"]),
    "input_kept": float(kept and isinstance(found, dict)),
}`,
      reference: { steps: [look, write('summary.json', answer(right))] },
      wrong: {
        'refunds-added': {
          why: 'refunds are added instead of subtracted',
          steps: [look, write('summary.json', answer(summarise(1)))],
        },
        'refunds-dropped': {
          why: 'refunds are left out',
          steps: [look, write('summary.json', answer(summarise(0)))],
        },
        'flat-object': {
          why: 'regions stand at the top instead of under by_region',
          steps: [look, write('summary.json', json({ total: right.total, ...right.regions }))],
        },
      },
    };
  },
};
