import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../testing/batches.js';
import { loadTensorFlow } from '../tf/load.js';
import { Ops } from '../tf/ops.js';
import type { Params } from '../model/fused.js';
import { muonStep } from './muon.js';
import { optimizerStep, type OptimizerState } from './optimizer.js';
import { resolveOptimizer } from './options.js';

type Arrays = Record<string, number[] | number[][]>;
interface Case {
  name: string;
  args: { lr: number; betas: [number, number]; eps: number; weight_decay: number; max_norm: number | null };
  inputs: { params: Arrays; grads_per_step: Arrays[] };
  outputs: { steps: { total_norm: number | null; params: Arrays; exp_avg: Arrays; exp_avg_sq: Arrays }[] };
}
const { cases } = JSON.parse(readFileSync(join(goldenFolder, 'adamw.json'), 'utf8')) as { cases: Case[] };
const ops = new Ops(loadTensorFlow());
const tensors = (arrays: Arrays): Params =>
  new Map(Object.entries(arrays).map(([name, values]) => [name, ops.tf.tensor(values)]));

/** Within rtol 1e-5, atol 1e-7: the golden file's own bound for float32. */
function expectClose(got: Params, want: Arrays, prefix = ''): void {
  for (const [name, values] of Object.entries(want)) {
    const flat = values.flat() as number[];
    const data = got.get(prefix + name)!.dataSync();
    flat.forEach((x, i) =>
      expect(Math.abs(data[i]! - x), name).toBeLessThanOrEqual(1e-5 * Math.abs(x) + 1e-7),
    );
  }
}

describe('AdamW against torch', () => {
  expect(cases.length).toBeGreaterThan(10);
  it.each(cases.map((c) => [c.name, c] as const))('%s', (_, { args, inputs, outputs }) => {
    const options = resolveOptimizer({
      kind: 'adamw',
      betas: args.betas,
      eps: args.eps,
      weightDecay: args.weight_decay,
    });
    let params = tensors(inputs.params);
    let state: OptimizerState = { steps: 0, moments: new Map() };
    inputs.grads_per_step.forEach((grads, i) => {
      const want = outputs.steps[i]!;
      const result = optimizerStep(ops, options, params, state, tensors(grads), {
        lr: args.lr,
        maxGradNorm: args.max_norm ?? 0,
      });
      ({ params, state } = result);
      if (typeof want.total_norm === 'number') expect(result.gradNorm).toBeCloseTo(want.total_norm, 4);
      expectClose(params, want.params);
      expectClose(state.moments, want.exp_avg, 'adam.m.');
      expectClose(state.moments, want.exp_avg_sq, 'adam.v.');
    });
  });
});

/** Muon as the prototype's torch code has it, in float64. */
function reference(grad: number[][], buffer: number[][], shape: [number, number]): number[][] {
  const map = (a: number[][], f: (x: number, i: number, j: number) => number): number[][] =>
    a.map((row, i) => row.map((x, j) => f(x, i, j)));
  const T = (a: number[][]): number[][] => a[0]!.map((_, j) => a.map((row) => row[j]!));
  const mul = (a: number[][], b: number[][]): number[][] =>
    a.map((row) => T(b).map((column) => row.reduce((s, x, k) => s + x * column[k]!, 0)));
  let u = map(grad, (x, i, j) => x + 0.95 * buffer[i]![j]!);
  const flip = shape[0] > shape[1];
  if (flip) u = T(u);
  const norm = Math.sqrt(u.flat().reduce((s, x) => s + x * x, 0)) + 1e-7;
  u = map(u, (x) => x / norm);
  for (let k = 0; k < 5; k++) {
    const a = mul(u, T(u));
    const aa = mul(a, a);
    const p = map(a, (x, i, j) => -4.775 * x + 2.0315 * aa[i]![j]!);
    const pu = mul(p, u);
    u = map(u, (x, i, j) => 3.4445 * x + pu[i]![j]!);
  }
  return flip ? T(u) : u;
}

describe('Muon', () => {
  it('moves tall and wide matrices as a plain float64 version does', () => {
    const matrix = (rows: number, columns: number, seed: number): number[][] =>
      Array.from({ length: rows }, (_, i) =>
        Array.from({ length: columns }, (_, j) => Math.sin(seed + i * 3.7 + j * j * 1.3)),
      );
    const shapes: Record<string, [number, number]> = { wide: [3, 5], tall: [5, 3], square: [4, 4] };
    const names = Object.keys(shapes);
    const of = (seed: number): Record<string, number[][]> =>
      Object.fromEntries(names.map((name) => [name, matrix(...shapes[name]!, seed)]));
    const [params, first, second] = [of(1), of(2), of(3)];
    const options = { lr: 0.01, momentum: 0.95, weightDecay: 0.05 };
    const one = muonStep(ops, tensors(params), tensors(first), new Map(), options);
    const pick = (key: 'param' | 'momentum'): Params => new Map([...one].map(([name, r]) => [name, r[key]]));
    const two = muonStep(ops, pick('param'), tensors(second), pick('momentum'), options);
    for (const name of names) {
      const shape = shapes[name]!;
      const scale = 0.01 * 0.2 * Math.sqrt(Math.max(...shape));
      let weights = params[name]!;
      let buffer = first[name]!;
      const apply = (update: number[][]): void => {
        weights = weights.map((row, i) => row.map((x, j) => x * (1 - 0.01 * 0.05) - scale * update[i]![j]!));
      };
      apply(reference(first[name]!, buffer, shape));
      buffer = buffer.map((row, i) => row.map((x, j) => 0.95 * x + second[name]![i]![j]!));
      apply(reference(second[name]!, buffer, shape));
      const got = two.get(name)!.param.dataSync();
      weights.flat().forEach((x, i) => expect(got[i]).toBeCloseTo(x, 5));
    }
  });
});
