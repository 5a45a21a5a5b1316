import { randomStream } from '@treeward/base';
import { valueLoss } from '@treeward/native';
import { describe, expect, it } from 'vitest';
import { algorithmDefaults, type PolicyAlgorithm } from './algorithms/algorithm.js';
import { groupAdvantages } from './algorithms/group-advantages.js';
import { resolveAlgorithm } from './algorithms/resolve.js';
import { readWeights } from './checkpoint/weights.js';
import { VALUE_BIAS, VALUE_WEIGHT, type ParamArrays } from './model/params.js';
import { packRows, tinyCheckpoint, tinyRows } from './testing/batches.js';
import { gradientsOf, workbench } from './testing/gradients.js';
import { readRow, type Params64, type Reading64 } from './testing/reference-decoder.js';
import { loadTensorFlow } from './tf/load.js';
import { Ops } from './tf/ops.js';
import { normaliserOf, tokenWeights } from './update/normaliser.js';
import { policyObjective } from './update/policy-objective.js';
import type { PolicyLoss } from './types.js';

// Four rollouts of a group on the tiny Qwen3 with a value head. Every array is moved along a direction of its own and back,
// in float64; what that does to a loss written out here is compared with the learner's gradient along it.
const STEP = 1e-5;
const random = randomStream('finite-differences');
const ops = new Ops(loadTensorFlow());
const base = readWeights(tinyCheckpoint);
const config = { ...base.config, output: 'tokens+value' as const };
const params: ParamArrays = new Map([
  ...base.params,
  [VALUE_WEIGHT, { shape: [1, 16], data: Float32Array.from({ length: 16 }, () => random.normal() / 2) }],
  [VALUE_BIAS, { shape: [1], data: Float32Array.of(0.3) }],
]);
const params64: Params64 = new Map([...params].map(([name, { data }]) => [name, Float64Array.from(data)]));
const directions: Params64 = new Map(
  [...params64].map(([name, data]) => {
    const raw = data.map(() => random.normal());
    const norm = Math.hypot(...raw);
    return [name, raw.map((x) => x / norm)];
  }),
);

const lengths = tinyRows.map((row) => row.length);
const starts = lengths.map((_, b) => lengths.slice(0, b).reduce((a, n) => a + n, 0));
const T = lengths.reduce((a, n) => a + n, 0);
const rollout_T = Int32Array.from(tinyRows.flatMap((row, b) => row.map(() => b)));
const wanted = Array.from({ length: T }, (_, t) => t).filter((t) => !starts.includes(t));

/** Of every wanted token, under parameters of which one array was moved along its direction. */
function readings(moved?: string, by = 0): Reading64[] {
  const at: Params64 = moved
    ? new Map([...params64, [moved, params64.get(moved)!.map((x, i) => x + by * directions.get(moved)![i]!)]])
    : params64;
  return tinyRows.flatMap((row) => readRow(config, at, row));
}
const now = readings();
const around = new Map(
  [...params64.keys()].map((name) => [name, [readings(name, STEP), readings(name, -STEP)] as const]),
);

/** Of other weights, near enough that some ratios are clipped and others are not. */
const near = (spread: number): Float32Array => {
  const out = new Float32Array(T).fill(NaN);
  wanted.forEach((t, m) => (out[t] = now[m]!.logprob + spread * random.normal()));
  return out;
};
const [logpOld_T, logpRollout_T, logpRef_T] = [near(0.3), near(0.5), near(0.3)];
const rewards = [1, 0, 0.25, 0.6];
/** As a critic gives them: another one for every token. */
const tokenAdvantages = Float32Array.from({ length: T }, () => random.normal());
const valuesOld_T = Float32Array.from({ length: T }, () => random.normal());
const targets_T = Float32Array.from({ length: T }, () => random.normal());

type Loss64 = (at: readonly Reading64[]) => number;

/** The largest difference of a gradient along the directions and the loss's central difference, over the largest of these. */
function compare(loss: Loss64, grads: ParamArrays, names = [...params.keys()]): number {
  let [difference, scale] = [0, 0];
  for (const name of names) {
    const [plus, minus] = around.get(name)!;
    const slope = (loss(plus) - loss(minus)) / (2 * STEP);
    const direction = directions.get(name)!;
    const data = grads.get(name)?.data ?? new Float32Array(direction.length);
    const along = direction.reduce((total, v, i) => total + v * data[i]!, 0);
    difference = Math.max(difference, Math.abs(along - slope));
    scale = Math.max(scale, Math.abs(slope));
  }
  expect(scale).toBeGreaterThan(1e-4);
  return difference / scale;
}

const bench = workbench(ops, config);
const packed = { ...packRows(tinyRows, [[...tokenAdvantages]]), rolloutLogprobs_T: logpRollout_T };
const clip = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);

/** A policy loss as the algorithms' definitions have it, Σ over tokens, in float64. */
function policy64(
  loss: PolicyLoss,
  advantages_T: Float32Array,
  weight_T: Float32Array,
  normaliser: number,
): Loss64 {
  const [low, high] = [1 - loss.clipLow, 1 + loss.clipHigh];
  const ratioNow = wanted.map((t, m) => Math.exp(now[m]!.logprob - logpOld_T[t]!));
  return (at) => {
    const logRatio = wanted.map((t, m) => at[m]!.logprob - logpOld_T[t]!);
    const total = wanted.map((t, m) => {
      const A = advantages_T[t]!;
      const own = wanted.flatMap((other, k) => (rollout_T[other] === rollout_T[t] ? [k] : []));
      const mean = own.reduce((a, k) => a + logRatio[k]!, 0) / own.length;
      const ratio = Math.exp(loss.objective === 'gspo' ? mean : logRatio[m]!);
      const importance = Math.exp(logpOld_T[t]! - logpRollout_T[t]!);
      const cut = loss.truncation ?? Infinity;
      const w = {
        off: 1,
        truncate: Math.min(importance, cut),
        mask: importance > cut ? 0 : importance,
      }[loss.importance ?? 'truncate'];
      const main =
        loss.objective === 'cispo'
          ? -A * clip(ratioNow[m]!, low, high) * at[m]!.logprob
          : Math.max(-A * ratio, -A * clip(ratio, low, high));
      const d = at[m]!.logprob - logpRef_T[t]!;
      const kl = { none: 0, k1: d, k2: (d * d) / 2, k3: Math.exp(-d) - 1 + d }[loss.kl ?? 'none'];
      const extra = (loss.klCoef ?? 0) * kl - (loss.entropyCoef ?? 0) * at[m]!.entropy;
      return weight_T[t]! * (w * main + extra);
    });
    return total.reduce((a, b) => a + b, 0) / normaliser;
  };
}

const { rloo, grpo, dr_grpo, dapo, gspo, cispo, ppo } = algorithmDefaults;

describe('gradients of every array against central differences in float64', () => {
  it('the decoder written out in float64 says what the learner says', async () => {
    const heard: number[] = [];
    await gradientsOf(
      bench,
      params,
      packed,
      {
        bannedIds: [],
        wantEntropy: true,
        tokens: ({ logprobs_M, entropies_M }, { source_M }) => {
          source_M.forEach((token, m) => {
            const { logprob, entropy } = now[wanted.indexOf(token)]!;
            heard.push(Math.abs(logprobs_M[m]! - logprob), Math.abs(entropies_M[m]! - entropy));
          });
          return { gradLogp_M: new Float32Array(source_M.length) };
        },
      },
      wanted,
    );
    expect(heard).toHaveLength(2 * wanted.length);
    expect(Math.max(...heard)).toBeLessThan(1e-5);
  });

  it.each<[string, PolicyAlgorithm]>([
    ['rloo', rloo],
    ['grpo', grpo],
    ['dr_grpo', dr_grpo],
    ['dapo', dapo],
    ['gspo', { ...gspo, clipLow: 0.2, clipHigh: 0.2 }],
    ['cispo', { ...cispo, clipLow: 0.2, clipHigh: 0.2 }],
    ['ppo', ppo],
    [
      'rloo with k1, entropy and masked weights',
      { ...rloo, importance: 'mask', kl: 'k1', klCoef: 0.1, entropyCoef: 0.05 },
    ],
    ['rloo with k2', { ...rloo, kl: 'k2', klCoef: 0.5 }],
  ])('%s', async (_, algorithm) => {
    const { group, loss: settings } = resolveAlgorithm({ ...algorithm, minibatches: 1 }, rewards.length);
    const loss: PolicyLoss = { ...settings, seed: '' };
    const own =
      group &&
      groupAdvantages(
        rewards,
        rewards.map(() => 'g'),
        group,
      );
    const advantages_T = own ? Float32Array.from(rollout_T, (b) => own[b]!) : tokenAdvantages;
    const ofRollout = new Map(rewards.map((__, b) => [b, wanted.filter((t) => rollout_T[t] === b)]));
    const weight_T = tokenWeights(loss, ofRollout, T);
    const normaliser = normaliserOf(loss, wanted.length, rewards.length);
    const terms = { batch: packed, loss, advantages_T, logpOld_T, logpRef_T, weight_T, rollout_T };
    const { grads } = await gradientsOf(
      bench,
      params,
      packed,
      {
        bannedIds: [],
        wantEntropy: Boolean(loss.entropyCoef),
        tokens: (values, micro) => policyObjective(terms, normaliser, values, micro).grads,
      },
      wanted,
    );
    expect(compare(policy64(loss, advantages_T, weight_T, normaliser), grads)).toBeLessThan(2e-5);
  });

  it('sft', async () => {
    const weights = wanted.map(() => random.next());
    const { grads } = await gradientsOf(
      bench,
      params,
      packed,
      {
        bannedIds: [],
        wantEntropy: false,
        tokens: (__, { source_M }) => ({
          gradLogp_M: Float32Array.from(source_M, (token) => -weights[wanted.indexOf(token)]!),
        }),
      },
      wanted,
    );
    const loss: Loss64 = (at) => at.reduce((total, { logprob }, m) => total - weights[m]! * logprob, 0);
    expect(compare(loss, grads)).toBeLessThan(2e-5);
  });

  it.each([Infinity, 0.4])('values, clip %d', async (limit) => {
    const { grads } = await gradientsOf(
      bench,
      params,
      packed,
      {
        bannedIds: [],
        wantEntropy: false,
        values: (values_M, { source_M }) =>
          valueLoss(
            {
              values_T: values_M,
              valuesOld_T: Float32Array.from(source_M, (token) => valuesOld_T[token]!),
              targets_T: Float32Array.from(source_M, (token) => targets_T[token]!),
              mask_T: new Float32Array(source_M.length).fill(1),
            },
            { clip: limit, normaliser: wanted.length },
          ).gradValues_T,
      },
      wanted,
    );
    const loss: Loss64 = (at) =>
      wanted.reduce((total, t, m) => {
        const [old, target] = [valuesOld_T[t]!, targets_T[t]!];
        const held = old + clip(at[m]!.value - old, -limit, limit);
        return total + Math.max((at[m]!.value - target) ** 2, (held - target) ** 2) / 2 / wanted.length;
      }, 0);
    expect(compare(loss, grads)).toBeLessThan(2e-5);
  });
});
