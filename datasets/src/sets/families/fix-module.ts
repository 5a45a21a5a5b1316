import { edit, exec, read, write } from '../../steps.js';
import { lines } from '../text.js';
import { RUN_PYTHON } from '../run-python.js';
import type { SetFamily } from '../set-task.js';

/** Two bugs in a module of prices. Dominant mistake: only what the visible tests show is repaired. */
export const fixModule: SetFamily = {
  name: 'fix-module',
  domain: 'software',
  level: 'base',
  make(random) {
    const limit = 10 * (2 + random.below(4));
    const rate = 5 + random.below(11);
    const free = 100 + 50 * random.below(5);
    const fee = 6 + random.below(5);
    const discount = (count: number): number => (count >= limit ? rate : 0);
    const shipping = (cents: number): number => (cents >= free * 100 ? 0 : fee * 100);
    const total = (count: number, price: number): number => {
      const goods = Math.floor((count * price * (100 - discount(count)) + 50) / 100);
      return goods + shipping(goods);
    };
    const source = (bugs: { discount?: boolean; order?: boolean; edge?: boolean }): string =>
      lines(
        '"""Prices in cents. All rounding is to the nearest cent, halves up."""',
        '',
        '',
        'def discount(count):',
        `    """Percent off: ${rate} from ${limit} pieces on, else 0."""`,
        `    return ${rate} if count ${bugs.discount ? '>' : '>='} ${limit} else 0`,
        '',
        '',
        'def shipping(cents):',
        `    """${fee * 100} cents; nothing for goods of ${free * 100} cents or more."""`,
        `    return 0 if cents ${bugs.edge ? '>' : '>='} ${free * 100} else ${fee * 100}`,
        '',
        '',
        'def total(count, price):',
        '    """Discounted goods plus shipping; shipping depends on the discounted goods."""',
        '    goods = (count * price * (100 - discount(count)) + 50) // 100',
        `    return goods + shipping(${bugs.order ? 'count * price' : 'goods'})`,
      );
    // Goods that are free to ship before the discount only.
    const between = Math.floor((free * 100) / limit) + 1;
    const visible = [
      `assert discount(${limit}) == ${rate}, "discount at the limit"`,
      `assert discount(${limit - 1}) == 0, "no discount below"`,
      `assert total(${limit}, ${between}) == ${total(limit, between)}, "shipping after the discount"`,
    ];
    const test = lines('from pricing import discount, total', '', ...visible, 'print("ok")');
    const broken = source({ discount: true, order: true, edge: true });
    const cases = {
      discount: [1, limit - 1, limit, limit + 1, 5 * limit].map((n) => [[n], discount(n)]),
      shipping: [0, free * 100 - 1, free * 100, free * 100 + 1].map((n) => [[n], shipping(n)]),
      total: [
        [1, 999],
        [limit, between],
        [limit - 1, between],
        [limit + 7, 333],
        [1, free * 100],
      ].map((args) => [args, total(args[0]!, args[1]!)]),
    };
    const look = [read('pricing.py'), read('test_pricing.py')];
    const log = (...names: string[]): ReturnType<typeof read> =>
      write('FIXES.md', lines(...names.map((name) => `- ${name}`)));
    const fixed = [
      edit(
        'pricing.py',
        `    return ${rate} if count > ${limit} else 0`,
        `    return ${rate} if count >= ${limit} else 0`,
      ),
      edit('pricing.py', '    return goods + shipping(count * price)', '    return goods + shipping(goods)'),
    ];
    const edge = edit(
      'pricing.py',
      `    return 0 if cents > ${free * 100} else ${fee * 100}`,
      `    return 0 if cents >= ${free * 100} else ${fee * 100}`,
    );
    return {
      files: { 'pricing.py': broken, 'test_pricing.py': test },
      query:
        'python3 test_pricing.py fails. The docstrings in pricing.py say what each function must do; repair every function of pricing.py that does not do what its docstring says, ' +
        'also where test_pricing.py does not look, until the tests pass. Keep the names and arguments of the functions and leave test_pricing.py as it is. ' +
        'Write FIXES.md: one line "- <function>" for each function you changed, in the order in which they stand in the file.',
      expected:
        'The agent finds a wrong comparison in discount and shipping and a wrong argument in total, repairs all three, runs the tests and lists the functions.',
      truth: { cases, test, broken },
      check: `${RUN_PYTHON}
changed = ws.text("pricing.py") not in (None, TRUTH["broken"])
scores = {}
for name, cases in TRUTH["cases"].items():
    results = call(ws, "pricing.py", name, [arguments for arguments, _ in cases]) if changed else [None] * len(cases)
    scores[name] = float(all(number(result) == wanted for result, (_, wanted) in zip(results, cases)))
scores["test_kept"] = float(changed and ws.text("test_pricing.py") == TRUTH["test"])
scores["fixes_listed"] = float(ws.lines("FIXES.md") == ["- discount", "- shipping", "- total"])
return scores`,
      reference: {
        steps: [
          ...look,
          ...fixed,
          edge,
          exec('python3 -B test_pricing.py'),
          log('discount', 'shipping', 'total'),
        ],
      },
      wrong: {
        'tests-only': {
          why: 'only what the visible tests show is repaired',
          steps: [...look, ...fixed, exec('python3 -B test_pricing.py'), log('discount', 'total')],
        },
        'test-weakened': {
          why: 'the test is changed instead of the module',
          steps: [...look, write('test_pricing.py', 'print("ok")\n'), log('discount', 'shipping', 'total')],
        },
        'special-cased': {
          why: 'the expected results of the tests are written into the functions',
          steps: [
            ...look,
            write(
              'pricing.py',
              lines(
                'def discount(count):',
                `    return ${rate} if count == ${limit} else 0`,
                '',
                'def shipping(cents):',
                `    return ${fee * 100}`,
                '',
                'def total(count, price):',
                `    return ${total(limit, between)}`,
              ),
            ),
            log('discount', 'total'),
          ],
        },
      },
    };
  },
};
