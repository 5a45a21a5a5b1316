import type { ToyCall, ToyRun } from './toy.js';

/** Factor of every token's score, calls in the order of the run. */
export type Estimator = (run: ToyRun) => number[][];

const perCall = (factor: (call: ToyCall, run: ToyRun) => number): Estimator => {
  return (run) => run.calls.map((call) => call.tokens.map(() => factor(call, run)));
};

const kidsOf = (run: ToyRun, { name }: ToyCall): ToyCall[] =>
  run.calls.filter(({ parent }) => parent === name);

/** Leaves below a call in the prefix tree; a leaf has one. */
function leafCount(run: ToyRun, call: ToyCall): number {
  const kids = kidsOf(run, call);
  return kids.length === 0 ? 1 : kids.reduce((sum, kid) => sum + leafCount(run, kid), 0);
}

const allLeaves = (run: ToyRun): number =>
  run.calls.reduce((sum, call) => sum + (call.parent === null ? leafCount(run, call) : 0), 0);

/** Rewards of single leaves backed up the prefix tree. */
function ownBackup(run: ToyRun, call: ToyCall, how: (values: number[]) => number): number {
  const kids = kidsOf(run, call);
  if (kids.length > 0) return how(kids.map((kid) => ownBackup(run, kid, how)));
  return run.leafRewards?.get(call.name) ?? 0;
}

const total = (values: number[]): number => values.reduce((a, b) => a + b, 0);
const mean = (values: number[]): number => total(values) / values.length;
const tokenCount = (run: ToyRun): number => total(run.calls.map(({ tokens }) => tokens.length));

/** Without a critic. `expected` is E[R]: a constant baseline, as a large group's mean is one. */
export const outcomeEstimators = (expected: number): Readonly<Record<string, Estimator>> => ({
  'once only, R': perCall((_, { reward }) => reward),
  'once only, R − E[R]': perCall((_, { reward }) => reward - expected),
  'linearised paths, summed': perCall((call, run) => run.reward * leafCount(run, call)),
  'linearised paths, averaged': perCall((call, run) => (run.reward * leafCount(run, call)) / allLeaves(run)),
  'failed attempts dropped': perCall(({ name }, { failed, reward }) => (failed?.has(name) ? 0 : reward)),
  'undelivered replies dropped, R': perCall(({ name }, { undelivered, reward }) =>
    undelivered?.has(name) ? 0 : reward,
  ),
  'undelivered replies dropped, R − E[R]': perCall(({ name }, { undelivered, reward }) =>
    undelivered?.has(name) ? 0 : reward - expected,
  ),
  "loss divided by the rollout's own tokens": perCall((_, run) => run.reward / tokenCount(run)),
  'leaf rewards backed up, mean': perCall((call, run) => ownBackup(run, call, mean)),
  'leaf rewards backed up, sum': perCall((call, run) => ownBackup(run, call, total)),
  'leaf rewards backed up, max': perCall((call, run) =>
    ownBackup(run, call, (values) => Math.max(...values)),
  ),
});

/** One step along the prefix tree with a critic (lambda 0), R at every leaf. */
export function prefixBackup(critic: (run: ToyRun) => number[][], how: 'mean' | 'max'): Estimator {
  return (run) => {
    const values = critic(run);
    const first = new Map(run.calls.map(({ name }, i) => [name, values[i]![0]!]));
    return run.calls.map((call, i) =>
      call.tokens.map((_, token) => {
        const own = values[i]![token]!;
        if (token + 1 < call.tokens.length) return values[i]![token + 1]! - own;
        const kids = kidsOf(run, call).map(({ name }) => first.get(name)!);
        if (kids.length === 0) return run.reward - own;
        return (how === 'mean' ? mean(kids) : Math.max(...kids)) - own;
      }),
    );
  };
}
