import { causalAdvantages, type CausalOrder } from '@treeward/tree-recovery';
import { randomStream } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { readWeights } from '../checkpoint/weights.js';
import { buildForest } from '../pack/forest.js';
import { packTrees } from '../pack/pack-trees.js';
import { tinyCheckpoint } from '../testing/batches.js';
import { node, tree } from '../testing/trees.js';
import { TfjsLearner } from '../tfjs-learner.js';
import type { CriticLoss, PackedTrees, PolicyLoss } from '../types.js';
import { loadTensorFlow } from '../tf/load.js';
import { Ops } from '../tf/ops.js';
import { toTensors } from '../weights-store.js';
import { VALUE_BIAS, VALUE_WEIGHT, EMBED, type ParamArrays } from '../model/params.js';
import { workbench } from '../testing/gradients.js';
import { causalCredit, criticValues, valuedTokens } from './critic.js';

// A failed attempt, its retry, a further turn, and a side call that nobody may see. C calls.
const nodes = [
  node('obs', -1, [10, 11, 12]),
  node('act', 0, [20, 21]),
  node('act', 0, [22, 23, 24]),
  node('obs', 2, [30]),
  node('act', 3, [31, 32]),
  node('obs', -1, [1, 2]),
  node('act', 5, [3]),
];
const chain: CausalOrder = {
  offset_C1: Int32Array.of(0, 1, 2, 2, 2),
  successor_L: Int32Array.of(1, 2),
  weight_L: Float32Array.of(1, 1),
};
const example = tree(
  nodes,
  {
    0: { startTime: 0, finishTime: 1 },
    1: { startTime: 2, finishTime: 3 },
    2: { startTime: 4, finishTime: 5 },
    3: { startTime: 0.5, finishTime: 1, role: 'side', untrained: 'side' },
  },
  { chain, lineage: chain },
);
const critic: CriticLoss = {
  sees: 'history',
  order: 'lineage',
  gamma: 0.9,
  lambda: 0.8,
  clip: Infinity,
  lr: 1e-2,
  coef: 0.5,
};

const ops = new Ops(loadTensorFlow());
const base = readWeights(tinyCheckpoint);
const random = randomStream('critic-test');
const params: ParamArrays = new Map([
  [EMBED, base.params.get(EMBED)!],
  ...[...base.params].filter(([name]) => name !== 'lm_head.weight'),
  [VALUE_WEIGHT, { shape: [1, 16], data: Float32Array.from({ length: 16 }, () => random.normal()) }],
  [VALUE_BIAS, { shape: [1], data: Float32Array.of(0.3) }],
]);
const model = {
  config: { ...base.config, output: 'value' as const },
  optimizer: workbench(ops, base.config).policy.optimizer,
  lora: null,
};

async function values(batch: PackedTrees, sees: CriticLoss['sees']): Promise<Map<number, number>> {
  const bench = { ...workbench(ops, base.config), critic: model };
  const state = {
    policy: { params: new Map(), optimizer: { steps: 0, moments: new Map() } },
    critic: { params: toTensors(ops, params), optimizer: { steps: 0, moments: new Map() } },
    version: 0,
  };
  const wanted = valuedTokens(batch);
  const values_T = await criticValues(bench, state, batch, buildForest(batch), { ...critic, sees }, wanted);
  return new Map(wanted.map((t) => [batch.tokens_T[t]!, values_T[t]!]));
}

/** The same tree with another token in place of one. */
const changed = (from: number, to: number): PackedTrees => {
  const batch = packTrees([example], [1]);
  return { ...batch, tokens_T: batch.tokens_T.map((token) => (token === from ? to : token)) };
};

describe('what a critic sees', () => {
  it('values every sampled token of calls that have a part in credit', async () => {
    const found = await values(packTrees([example], [1]), 'history');
    expect([...found.keys()]).toEqual([20, 21, 22, 23, 24, 31, 32]);
    expect([...found.values()].every(Number.isFinite)).toBe(true);
  });

  it('history: a retry sees the failed attempt, which its own context lacks', async () => {
    for (const [sees, moved] of [
      ['history', true],
      ['context', false],
    ] as const) {
      const before = await values(packTrees([example], [1]), sees);
      const after = await values(changed(21, 5), sees);
      // The first value of the retry, read on the prompt that both share.
      expect(before.get(22) === after.get(22), sees).toBe(!moved);
      expect(before.get(31) === after.get(31), sees).toBe(!moved);
      // The attempt's own values come before the token that changed.
      expect(before.get(20)).toBe(after.get(20));
      expect(before.get(21)).toBe(after.get(5));
    }
  });

  it('neither the future nor a side call changes a value', async () => {
    const before = await values(packTrees([example], [1]), 'history');
    const later = await values(changed(32, 6), 'history');
    for (const token of [20, 21, 22, 23, 24, 31]) expect(later.get(token)).toBe(before.get(token));
    const retry = await values(changed(24, 6), 'history');
    for (const token of [20, 21, 22, 23]) expect(retry.get(token)).toBe(before.get(token));
    const side = await values(changed(3, 7), 'history');
    expect([...side]).toEqual([...before]);
  });

  it('with nothing beside the own context, history and context agree', async () => {
    const line = tree(
      [node('obs', -1, [10, 11]), node('act', 0, [20, 21]), node('obs', 1, [30]), node('act', 2, [31])],
      {
        0: { startTime: 0, finishTime: 1 },
        1: { startTime: 2, finishTime: 3 },
      },
    );
    const batch = packTrees([line], [1]);
    const [history, context] = [await values(batch, 'history'), await values(batch, 'context')];
    for (const [token, value] of history) expect(Math.abs(value - context.get(token)!)).toBeLessThan(1e-5);
  });
});

describe('causal credit', () => {
  it('is that of the f64 reference, along either order', () => {
    const batch = packTrees([example, example], [1, 1]);
    const values_T = Float32Array.from(batch.tokens_T, () => random.normal());
    for (const order of ['chain', 'lineage'] as const) {
      const got = causalCredit(batch, values_T, { ...critic, order });
      const calls = batch.calls!;
      for (const r of [0, 1]) {
        const own = [0, 1, 2, 3].map((c) => calls.action_C[calls.callOffset_R1[r]! + c]!);
        const spans = own.map((row) => [batch.rowStart_B1[row]!, batch.rowStart_B1[row + 1]!] as const);
        const tokens = spans.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
        const offsets = [0];
        for (const [from, to] of spans) offsets.push(offsets.at(-1)! + to - from);
        const want = causalAdvantages(example.causal[order], {
          tokenOffset_C1: Int32Array.from(offsets),
          values_T: Float64Array.from(tokens, (t) => values_T[t]!),
          reward: 1,
          gamma: critic.gamma,
          lambda: critic.lambda,
        });
        tokens.forEach((t, i) => {
          expect(got.advantages_T[t]).toBeCloseTo(want.advantages_T[i]!, 5);
          expect(got.targets_T[t]).toBeCloseTo(want.targets_T[i]!, 5);
        });
      }
    }
  });
});

describe('learning with a critic', () => {
  const ppo: PolicyLoss = {
    kind: 'policy',
    clipLow: 0.2,
    clipHigh: 0.28,
    truncation: 2,
    importance: 'off',
    normaliser: 20,
    epochs: 1,
    minibatches: 1,
    klStop: 0,
    mismatchMax: Infinity,
    seed: 's',
  };
  const good = tree([node('obs', -1, [10, 11]), node('act', 0, [20, 21])], {
    0: { bannedIds: [], temperature: 1 },
  });
  const bad = {
    ...tree([node('obs', -1, [12, 13]), node('act', 0, [24, 25])], { 0: { bannedIds: [], temperature: 1 } }),
    reward: 0,
  };
  const batch = packTrees([good, bad], [0, 0]);
  const step = { lr: 1e-3, maxGradNorm: 1 };

  it.each(['history', 'context'] as const)(
    'a value model (%s) learns what rollouts are worth, the policy stays',
    async (sees) => {
      const learner = await TfjsLearner.open({ checkpoint: tinyCheckpoint, critic: { kind: 'model' } });
      const before = await learner.score(batch);
      const stage = {
        kind: 'value' as const,
        critic: { ...critic, sees, gamma: 1, lambda: 1 },
        epochs: 40,
        minibatches: 1,
        seed: 's',
      };
      const first = await learner.update(batch, stage, step);
      const second = await learner.update(batch, stage, step);
      expect(first['value/explained_variance']).toBe(0);
      expect(second['value/explained_variance']).toBeGreaterThan(0.9);
      expect((await learner.score(batch)).logprobs_T).toEqual(before.logprobs_T);
      // Rollouts that are worth what the critic says have nothing left to teach.
      const metrics = await learner.update(batch, { ...ppo, critic: stage.critic }, step);
      expect(metrics['value/explained_variance']).toBeGreaterThan(0.9);
      expect(metrics['optim/updates']).toBe(1);
      await learner.close();
    },
  );

  it('a head on the policy’s trunk learns with it', async () => {
    const learner = await TfjsLearner.open({ checkpoint: tinyCheckpoint, critic: { kind: 'head' } });
    const loss = {
      ...ppo,
      critic: { ...critic, sees: 'context' as const, gamma: 1, lambda: 1, coef: 1 },
      epochs: 40,
    };
    const first = await learner.update(batch, loss, { ...step, lr: 3e-3 });
    const second = await learner.update(batch, loss, { ...step, lr: 3e-3 });
    await expect(
      learner.update(batch, { ...loss, critic: { ...loss.critic, sees: 'history' } }, step),
    ).rejects.toMatchObject({ code: 'LEARNER_E_CRITIC' });
    expect(second['loss/value']).toBeLessThan(first['loss/value']! / 2);
    await learner.close();
  });

  it('refuses a critic that was never made, and a batch that does not know its calls', async () => {
    const learner = await TfjsLearner.open({ checkpoint: tinyCheckpoint });
    await expect(learner.update(batch, { ...ppo, critic }, step)).rejects.toMatchObject({
      code: 'LEARNER_E_CRITIC',
    });
    const { calls: _, ...without } = batch;
    await expect(learner.update(without, { ...ppo, critic }, step)).rejects.toMatchObject({
      code: 'LEARNER_E_CRITIC',
    });
    await learner.close();
  });
});
