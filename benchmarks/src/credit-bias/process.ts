/**
 * Small stochastic processes that can be enumerated: every outcome with its probability, so that the expected gradient
 * of an estimator is a sum and not a simulation.
 *
 * A policy is a table of logits; a sampled token names the row it was drawn from.
 */
export type Table = ReadonlyMap<string, readonly number[]>;

export interface ToyToken {
  row: string;
  action: number;
}

export interface Draws {
  /** A token of the policy. */
  token(row: string): number;
  /** The environment's own randomness: it holds no parameter of the policy. */
  chance(probabilities: readonly number[]): number;
}

export interface Outcome<T> {
  probability: number;
  run: T;
}

/** A sparse gradient: one number per row and action, under `row/action`. */
export type Gradient = Map<string, number>;

export function softmax(logits: readonly number[]): number[] {
  const weights = logits.map(Math.exp);
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / total);
}

function rowOf(table: Table, row: string): readonly number[] {
  const logits = table.get(row);
  if (!logits) throw new Error(`the toy has no policy row ${row}`);
  return logits;
}

/** All outcomes of `process`, by replaying it with every script of choices. */
export function enumerate<T>(table: Table, process: (draws: Draws) => T): Outcome<T>[] {
  const outcomes: Outcome<T>[] = [];
  const scripts: number[][] = [[]];
  for (let script = scripts.pop(); script; script = scripts.pop()) {
    const given = script;
    const taken: number[] = [];
    let probability = 1;
    const choose = (probabilities: readonly number[]): number => {
      const at = taken.length;
      const choice = given[at] ?? 0;
      if (at >= given.length) {
        for (let other = 1; other < probabilities.length; other++) {
          if (probabilities[other]! > 0) scripts.push([...taken, other]);
        }
      }
      taken.push(choice);
      probability *= probabilities[choice]!;
      return choice;
    };
    const run = process({ token: (row) => choose(softmax(rowOf(table, row))), chance: choose });
    if (probability > 0) outcomes.push({ probability, run });
  }
  return outcomes;
}

/** Expectation of `value` over the process. */
export const expectation = <T>(outcomes: readonly Outcome<T>[], value: (run: T) => number): number =>
  outcomes.reduce((sum, { probability, run }) => sum + probability * value(run), 0);

/** Conditional expectation of `value` given `key`; several keys of one run each count. */
export function conditional<T>(
  outcomes: readonly Outcome<T>[],
  keys: (run: T) => readonly string[],
  value: (run: T) => number,
): Map<string, number> {
  const sums = new Map<string, [number, number]>();
  for (const { probability, run } of outcomes) {
    for (const key of keys(run)) {
      const [total, weight] = sums.get(key) ?? [0, 0];
      sums.set(key, [total + probability * value(run), weight + probability]);
    }
  }
  return new Map([...sums].map(([key, [total, weight]]) => [key, total / weight]));
}

/** Adds `factor` × the gradient of log π(token). */
export function addScore(into: Gradient, table: Table, { row, action }: ToyToken, factor: number): void {
  softmax(rowOf(table, row)).forEach((probability, other) => {
    const key = `${row}/${other}`;
    into.set(key, (into.get(key) ?? 0) + factor * ((other === action ? 1 : 0) - probability));
  });
}

/** Central differences of the enumerated objective: knows nothing of score functions. */
export function exactGradient<T>(
  table: Table,
  process: (draws: Draws) => T,
  objective: (run: T) => number,
): Gradient {
  const step = 1e-5;
  const gradient: Gradient = new Map();
  for (const [row, logits] of table) {
    logits.forEach((_, action) => {
      const at = (delta: number): number => {
        const moved = new Map(table);
        moved.set(
          row,
          logits.map((logit, i) => (i === action ? logit + delta : logit)),
        );
        return expectation(enumerate(moved, process), objective);
      };
      gradient.set(`${row}/${action}`, (at(step) - at(-step)) / (2 * step));
    });
  }
  return gradient;
}

export interface Comparison {
  /** |E g − ∇J| / |∇J|. */
  bias: number;
  cosine: number;
  /** Trace of the covariance of g. */
  variance: number;
}

/** An estimator's expected gradient against the exact one. `gradients` are those of single draws with their probabilities. */
export function compare(
  gradients: Iterable<{ probability: number; gradient: Gradient }>,
  exact: Gradient,
): Comparison {
  const mean: Gradient = new Map();
  let squares = 0;
  for (const { probability, gradient } of gradients) {
    for (const [key, value] of gradient) {
      mean.set(key, (mean.get(key) ?? 0) + probability * value);
      squares += probability * value * value;
    }
  }
  const keys = new Set([...mean.keys(), ...exact.keys()]);
  let [distance, ownNorm, exactNorm, dot] = [0, 0, 0, 0];
  for (const key of keys) {
    const [own, reference] = [mean.get(key) ?? 0, exact.get(key) ?? 0];
    distance += (own - reference) ** 2;
    ownNorm += own * own;
    exactNorm += reference * reference;
    dot += own * reference;
  }
  return {
    bias: Math.sqrt(distance / exactNorm),
    cosine: ownNorm === 0 ? 0 : dot / Math.sqrt(ownNorm * exactNorm),
    variance: squares - ownNorm,
  };
}
