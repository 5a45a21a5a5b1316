import { read, write } from '../../steps.js';
import { csv, json, lines, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const NAMES = [
  'standing desks',
  'air filter',
  'phone booth',
  'new router',
  'bike rack',
  'coffee bar',
  'plants',
  'projector',
];
const AREAS = ['health', 'tools', 'comfort'];

/** The best set of purchases within a budget. Dominant mistake: greedy by value. */
export const budgetChoice: SetFamily = {
  name: 'budget-choice',
  domain: 'planning',
  level: 'base',
  make(random) {
    // Drawn again until the best set is unique and each shortcut misses it.
    for (;;) {
      const options = random.shuffle(NAMES).map((name, i) => ({
        id: `P${i + 1}`,
        name,
        area: AREAS[i % 3]!,
        cost: 100 * (8 + random.below(40)),
        value: 10 + random.below(60),
      }));
      const budget = 100 * (70 + random.below(20));
      const most = 4;
      const pair = [options[0]!, options[3 + random.below(3)]!];
      type Set = typeof options;
      const cost = (set: Set): number => sum(set.map((o) => o.cost));
      const value = (set: Set): number => sum(set.map((o) => o.value));
      const rules: ((set: Set) => boolean)[] = [
        (set) => cost(set) <= budget,
        (set) => set.length <= most,
        (set) => !pair.every((o) => set.includes(o)),
        (set) => AREAS.slice(0, 2).every((area) => set.some((o) => o.area === area)),
      ];
      const subsets = Array.from({ length: 2 ** options.length }, (_, bits) =>
        options.filter((_o, i) => (bits >> i) & 1),
      );
      const best = (kept: typeof rules): Set =>
        subsets
          .filter((set) => kept.every((rule) => rule(set)))
          .reduce((a, b) => (value(b) > value(a) ? b : a), []);
      const right = best(rules);
      const rivals = subsets.filter((set) => rules.every((rule) => rule(set)) && value(set) === value(right));
      const greedy: Set = [];
      for (const option of [...options].sort((a, b) => b.value - a.value))
        if (rules.slice(0, 3).every((rule) => rule([...greedy, option]))) greedy.push(option);
      const noPair = best(rules.filter((_, i) => i !== 2));
      const noMost = best(rules.filter((_, i) => i !== 1));
      const ids = (set: Set): string[] => set.map((o) => o.id).sort();
      if (right.length < 3 || rivals.length > 1) continue;
      if ([greedy, noPair, noMost].some((set) => ids(set).join() === ids(right).join())) continue;
      const answer = (set: Set): string =>
        json({ chosen: ids(set), total_cost: cost(set), total_value: value(set), left: budget - cost(set) });
      const plan = (set: Set): Plan => ({
        steps: [read('options.csv'), read('brief.md'), write('decision.json', answer(set))],
      });
      return {
        files: {
          'options.csv': csv(
            ['id', 'name', 'area', 'cost', 'value'],
            options.map((o) => [o.id, o.name, o.area, o.cost, o.value]),
          ),
          'brief.md': lines(
            '# What to buy',
            '',
            `- The budget is ${budget}; the costs together must not exceed it.`,
            `- At most ${most} purchases.`,
            `- ${pair.map((o) => o.id).join(' and ')} must not be bought together.`,
            `- At least one purchase of the area ${AREAS[0]!} and one of the area ${AREAS[1]!}.`,
            '- Among all choices that keep these rules, the one with the largest total value is wanted.',
          ),
        },
        query:
          'Choose purchases from options.csv following brief.md. Write decision.json: {"chosen": ids sorted alphabetically, "total_cost", "total_value", "left": what remains of the budget}.',
        expected:
          'The agent finds the admissible set with the largest total value and writes it with its sums.',
        truth: {
          options: Object.fromEntries(options.map((o) => [o.id, [o.area, o.cost, o.value]])),
          ...{ budget, most, pair: pair.map((o) => o.id), areas: AREAS.slice(0, 2), best: ids(right) },
        },
        check: `
found = ws.json("decision.json")
chosen = at(found, "chosen")
valid = isinstance(chosen, list) and all(isinstance(id, str) and id in TRUTH["options"] for id in chosen)
valid = valid and len(chosen) > 0 and chosen == sorted(set(chosen))
rows = [TRUTH["options"][id] for id in chosen] if valid else []
cost, value = sum(row[1] for row in rows), sum(row[2] for row in rows)
return {
    "listed": float(valid),
    "budget_kept": float(valid and cost <= TRUTH["budget"]),
    "rules_kept": float(valid and len(rows) <= TRUTH["most"] and not set(TRUTH["pair"]) <= set(chosen) and set(TRUTH["areas"]) <= {row[0] for row in rows}),
    "best": float(valid and chosen == TRUTH["best"]),
    "sums": float(valid and close(at(found, "total_cost"), cost) and close(at(found, "total_value"), value)),
    "left": float(valid and close(at(found, "left"), TRUTH["budget"] - cost)),
}`,
        reference: plan(right),
        wrong: {
          greedy: { why: 'the most valuable purchases are taken one after the other', ...plan(greedy) },
          'pair-bought': { why: 'the two that exclude each other are not minded', ...plan(noPair) },
          'too-many': { why: 'more purchases than allowed', ...plan(noMost) },
        },
      };
    }
  },
};
