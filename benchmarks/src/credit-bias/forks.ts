import {
  addScore,
  compare,
  enumerate,
  exactGradient,
  type Comparison,
  type Draws,
  type Gradient,
  type Table,
  type ToyToken,
} from './process.js';

/**
 * Toy B of design/credit.md: exploration forks. The same decision process is continued several times from one point, one
 * or three times depending on an action, and every leaf has a reward of its own. Not what a harness does; what tree search
 * does, and what backups along a prefix tree are made for.
 */
interface Fork {
  token: ToyToken;
  kids: Fork[];
  /** Of a leaf. */
  reward: number | null;
  /** Actions above it: exact values are known by them. */
  history: string;
}

const table: Table = new Map([
  ['a0', [0.3, -0.2]],
  ['a1|0', [0.2, -0.5]],
  ['a1|1', [-0.3, 0.6]],
  ['a2|0', [0, 0.7]],
  ['a2|1', [0.5, -0.1]],
]);

const REWARDS = [
  [
    [0.1, 0.9],
    [0.4, -0.3],
  ],
  [
    [0.7, 0.2],
    [1, 0.5],
  ],
] as const;

const process =
  (width: (depth: number, action: number) => number) =>
  ({ token }: Draws): Fork => {
    const a0 = token('a0') as 0 | 1;
    const root: Fork = { token: { row: 'a0', action: a0 }, kids: [], reward: null, history: '' };
    for (let i = 0; i < width(0, a0); i++) {
      const a1 = token(`a1|${a0}`) as 0 | 1;
      const middle: Fork = {
        token: { row: `a1|${a0}`, action: a1 },
        kids: [],
        reward: null,
        history: `${a0}`,
      };
      root.kids.push(middle);
      for (let k = 0; k < width(1, a1); k++) {
        const a2 = token(`a2|${a1}`) as 0 | 1;
        const leaf = { token: { row: `a2|${a1}`, action: a2 }, kids: [], history: `${a0}${a1}` };
        middle.kids.push({ ...leaf, reward: REWARDS[a0][a1][a2] });
      }
    }
    return root;
  };

const forked = process((depth, action) => (depth === 0 ? 2 : action === 0 ? 1 : 3));
const single = process(() => 1);

const leaves = (fork: Fork): number[] => (fork.reward !== null ? [fork.reward] : fork.kids.flatMap(leaves));
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const mean = (values: readonly number[]): number => sum(values) / values.length;

function backup(fork: Fork, how: (values: number[]) => number): number {
  return fork.reward ?? how(fork.kids.map((kid) => backup(kid, how)));
}

/** What a node is weighted by its root: `reach` = product of 1 / (children) above it. */
interface At {
  fork: Fork;
  root: Fork;
  reach: number;
  value: (history: string) => number;
}

const share = ({ fork, root }: At): number => leaves(fork).length / leaves(root).length;
const next = ({ fork, value }: At, weigh: (kids: readonly Fork[]) => number[]): number =>
  fork.reward ?? sum(weigh(fork.kids).map((weight, i) => weight * value(fork.kids[i]!.history)));
const equal = (kids: readonly Fork[]): number[] => kids.map(() => 1 / kids.length);
const byLeaves = (kids: readonly Fork[]): number[] => {
  const counts = kids.map((kid) => leaves(kid).length);
  return counts.map((count) => count / sum(counts));
};

/** Factor of a node's score, by estimator. */
export const forkEstimators: Readonly<Record<string, (at: At) => number>> = {
  'reach weight, mean backup': ({ fork, reach }) => reach * backup(fork, mean),
  'reach weight, mean backup, minus exact V': ({ fork, reach, value }) =>
    reach * (backup(fork, mean) - value(fork.history)),
  'reach weight, lambda 0, exact V': (at) => at.reach * (next(at, equal) - at.value(at.fork.history)),
  'leaf share, leaf mean (= linearised, 1/L)': (at) => share(at) * mean(leaves(at.fork)),
  'leaf share, lambda 0, exact V': (at) => share(at) * (next(at, byLeaves) - at.value(at.fork.history)),
  'linearised, summed (= sum backup)': ({ fork }) => sum(leaves(fork)),
  'weight 1 per node, mean backup': ({ fork }) => backup(fork, mean),
  'reach weight, max backup': ({ fork, reach }) => reach * backup(fork, (values) => Math.max(...values)),
  'once only, mean leaf reward of the rollout': ({ root }) => mean(leaves(root)),
  'once only, summed leaf reward of the rollout': ({ root }) => sum(leaves(root)),
  'once only, largest leaf reward of the rollout': ({ root }) => Math.max(...leaves(root)),
};

export type ForkObjective = 'chain' | 'sum' | 'mean' | 'max';

const OBJECTIVES: Readonly<Record<Exclude<ForkObjective, 'chain'>, (root: Fork) => number>> = {
  sum: (root) => sum(leaves(root)),
  mean: (root) => mean(leaves(root)),
  max: (root) => Math.max(...leaves(root)),
};

/** Bias of every estimator of toy B against every objective; `chain` is the expected reward of one unforked chain. */
export function forkBias(): Map<string, Record<ForkObjective, Comparison>> {
  const exact: Record<ForkObjective, Gradient> = {
    chain: exactGradient(table, single, (root) => leaves(root)[0]!),
    sum: exactGradient(table, forked, OBJECTIVES.sum),
    mean: exactGradient(table, forked, OBJECTIVES.mean),
    max: exactGradient(table, forked, OBJECTIVES.max),
  };
  const value = exactValues();
  const outcomes = enumerate(table, forked);
  const rows = new Map<string, Record<ForkObjective, Comparison>>();
  for (const [name, factor] of Object.entries(forkEstimators)) {
    const gradients = outcomes.map(({ probability, run }) => {
      const gradient: Gradient = new Map();
      const walk = (fork: Fork, reach: number): void => {
        addScore(gradient, table, fork.token, factor({ fork, root: run, reach, value }));
        for (const kid of fork.kids) walk(kid, reach / fork.kids.length);
      };
      walk(run, 1);
      return { probability, gradient };
    });
    const against = (objective: ForkObjective): Comparison => compare(gradients, exact[objective]);
    rows.set(name, {
      chain: against('chain'),
      sum: against('sum'),
      mean: against('mean'),
      max: against('max'),
    });
  }
  return rows;
}

/** Expected reward of a chain, by the actions so far. */
function exactValues(): (history: string) => number {
  const totals = new Map<string, [number, number]>();
  for (const { probability, run } of enumerate(table, single)) {
    for (let fork: Fork | undefined = run; fork; fork = fork.kids[0]) {
      const [total, weight] = totals.get(fork.history) ?? [0, 0];
      totals.set(fork.history, [total + probability * leaves(run)[0]!, weight + probability]);
    }
  }
  return (history) => {
    const [total, weight] = totals.get(history)!;
    return total / weight;
  };
}
