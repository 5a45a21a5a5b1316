import { read, write } from '../../steps.js';
import { json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const NAMES = ['amber', 'basil', 'cobalt', 'dill', 'ember', 'fern', 'garnet', 'hazel', 'iris'];
const OUTSIDE = ['yaml-lite', 'tiny-http', 'colors-kit'];

/** Dependencies → build order and waves. Dominant mistake: packages stand in the order of waves instead of the stated one. */
export const packageOrder: SetFamily = {
  name: 'package-order',
  domain: 'software',
  level: 'base',
  make(random) {
    for (;;) {
      const hidden = random.shuffle(NAMES);
      const packages = hidden.map((name, i) => ({
        name,
        version: `${1 + random.below(3)}.${random.below(9)}.0`,
        needs: [
          ...new Set(i < 2 ? [] : Array.from({ length: random.below(3) }, () => hidden[random.below(i)]!)),
          ...(random.below(3) === 0 ? [random.pick(OUTSIDE)] : []),
        ],
      }));
      const needs = new Map(packages.map((p) => [p.name, p.needs.filter((n) => hidden.includes(n))]));
      const ready = (built: readonly string[]): string[] =>
        NAMES.filter((name) => !built.includes(name) && needs.get(name)!.every((n) => built.includes(n)));
      const order: string[] = [];
      while (order.length < NAMES.length) order.push(ready(order)[0]!);
      const waves: string[][] = [];
      while (waves.flat().length < NAMES.length) waves.push(ready(waves.flat()));
      const external = [...new Set(packages.flatMap((p) => p.needs))]
        .filter((n) => !hidden.includes(n))
        .sort();
      // Every shortcut must show.
      if (
        waves.length < 3 ||
        external.length < 2 ||
        order.join() === waves.flat().join() ||
        order.join() === NAMES.join()
      )
        continue;
      const plan = (
        list: readonly string[],
        groups = waves,
        outside: readonly string[] = external,
      ): Plan => ({
        steps: [
          read('packages.json'),
          write('order.txt', lines(...list)),
          write('waves.json', json(groups)),
          write('external.txt', lines(...outside)),
        ],
      });
      return {
        files: {
          'packages.json': json(
            Object.fromEntries(
              random
                .shuffle(packages)
                .map(({ name, version, needs: own }) => [name, { version, needs: own }]),
            ),
          ),
        },
        query:
          'packages.json says which packages each package needs. Write order.txt, one package per line: always the alphabetically first one among those not yet listed whose needs are all listed above; needs that are not in packages.json are external and do not matter here. ' +
          'Write waves.json, a list of lists: the first holds the packages without needs inside packages.json, each next one those whose needs all stand in earlier lists and which are in none of these; each list alphabetical. ' +
          'Write external.txt: the external needs, one per line, alphabetical, each once.',
        expected:
          'The agent computes the build order with alphabetical ties, the waves and the list of external needs.',
        truth: { order, waves, external, needs: Object.fromEntries(needs) },
        check: `
order = [line.strip() for line in ws.lines("order.txt") or []]
place = {name: i for i, name in enumerate(order)}
valid = sorted(order) == sorted(TRUTH["needs"])
return {
    "listed": float(valid),
    "needs_first": float(valid and all(place[need] < place[name] for name, needs in TRUTH["needs"].items() for need in needs)),
    "order": float(order == TRUTH["order"]),
    "first_wave": float(same(at(ws.json("waves.json"), 0), TRUTH["waves"][0])),
    "waves": places(ws.json("waves.json"), TRUTH["waves"]),
    "external": float(ws.lines("external.txt") == TRUTH["external"]),
}`,
        reference: plan(order),
        wrong: {
          'waves-in-a-row': {
            why: 'the waves are written one after the other as the order',
            ...plan(waves.flat()),
          },
          alphabetical: { why: 'the order is alphabetical', ...plan(NAMES, [NAMES]) },
          'external-listed': {
            why: 'external packages are built too',
            ...plan([...external, ...order], [[...external, ...waves[0]!], ...waves.slice(1)]),
          },
        },
      };
    }
  },
};
