// How verl averages losses and entropies (datasets/golden/loss_aggregation.json), through every implementation: each of its modes
// is a weight per token. A token's loss is its negative advantage at ratio 1; entropies come from logits. Inputs are rounded to
// float32: rtol 1e-5, atol 1e-6.
import { describe, expect, test } from 'vitest';
import { goldenCases } from './testing/golden.js';
import { implementations } from './testing/implementations.js';

type Matrix = number[][];
interface Args {
  loss_agg_mode: string;
  dp_size?: number;
  batch_num_tokens?: number;
  global_batch_size?: number;
  loss_scale_factor?: number;
}
interface Case {
  name: string;
  args: Args;
  inputs: { loss_mat: Matrix; loss_mask: Matrix; logits: number[][][]; response_mask: Matrix };
  outputs: { loss: number; grad_loss_mat: Matrix; grad_logits: number[][][] };
}
const cases = goldenCases<Case>('loss_aggregation.json');
const losses = cases.filter(({ name }) => name.startsWith('agg_loss/'));
const entropies = cases.filter(({ name }) => name.startsWith('entropy_loss/'));

/** Weights per token. */
function weights(mask: Matrix, args: Args): Matrix {
  const lengths = mask.map((row) => row.reduce((a, b) => a + b, 0));
  const tokens = args.batch_num_tokens ?? lengths.reduce((a, b) => a + b, 0);
  const rows = args.global_batch_size ?? lengths.filter((length) => length > 0).length;
  const ranks = args.dp_size ?? 1;
  const weightIn: Record<string, (length: number, width: number) => number> = {
    'token-mean': () => ranks / tokens,
    'token-sum': () => ranks,
    'seq-mean-token-sum': () => ranks / rows,
    'seq-mean-token-mean': (length) => ranks / rows / (length + 1e-8),
    'seq-mean-token-sum-norm': (_, width) => ranks / rows / (args.loss_scale_factor ?? width),
  };
  return mask.map((row, b) =>
    row.map((m) => (m === 0 ? 0 : weightIn[args.loss_agg_mode]!(lengths[b]!, row.length))),
  );
}

function close(got: ArrayLike<number>, want: ArrayLike<number>): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++)
    expect(Math.abs(got[i]! - want[i]!), `[${i}]`).toBeLessThanOrEqual(1e-6 + 1e-5 * Math.abs(want[i]!));
}

test('every case is one or the other', () => {
  expect([losses.length, entropies.length]).toEqual([22, 4]);
});

describe.each(implementations)('$name', ({ binding, backend }) => {
  const none = { clipLow: 0.2, clipHigh: 0.2, truncation: Infinity, normaliser: 1 };

  test.each(losses)('golden $name', ({ args, inputs, outputs }) => {
    const loss_T = inputs.loss_mat.flat();
    const zeros = new Float32Array(loss_T.length);
    const result = binding.policyLoss(
      {
        logp_T: zeros,
        logpOld_T: zeros,
        logpRollout_T: zeros,
        advantages_T: Float32Array.from(loss_T, (x) => -x),
        mask_T: Float32Array.from(weights(inputs.loss_mask, args).flat()),
      },
      none,
      backend,
    );
    close([result.loss], [outputs.loss]);
    // d ratio / d logp is 1.
    close(
      result.gradLogp_T,
      outputs.grad_loss_mat.flat().map((g, t) => g * loss_T[t]!),
    );
  });

  test.each(entropies)('golden $name', ({ args, inputs, outputs }) => {
    const rows = inputs.logits.flat();
    const V = rows[0]!.length;
    const mask_T = Float32Array.from(weights(inputs.response_mask, args).flat());
    const entropy_T = new Float32Array(rows.length);
    // A row of logits is a vocabulary of size-1 weights under a hidden state of 1.
    rows.forEach((logits_V, t) => {
      const input = {
        hidden_TD: Float32Array.of(1),
        weight_VD: Float32Array.from(logits_V),
        chosen_T: Int32Array.of(0),
      };
      const forward = binding.linearLogprob(input, { hiddenSize: 1 }, backend);
      entropy_T[t] = forward.entropy_T[0]!;
      const gradients = {
        ...input,
        lse_T: forward.lse_T,
        entropy_T: forward.entropy_T,
        gradLogp_T: Float32Array.of(0),
        gradEntropy_T: Float32Array.of(mask_T[t]!),
      };
      const { gradWeight_VD } = binding.linearLogprobBackward(gradients, { hiddenSize: 1 }, backend);
      close(gradWeight_VD, outputs.grad_logits.flat()[t]!);
      expect(gradWeight_VD).toHaveLength(V);
    });
    const zeros = new Float32Array(rows.length);
    const arrays = {
      logp_T: zeros,
      logpOld_T: zeros,
      logpRollout_T: zeros,
      advantages_T: zeros,
      mask_T,
      entropy_T,
    };
    close([binding.policyLoss(arrays, { ...none, entropyCoef: -1 }, backend).loss], [outputs.loss]);
  });
});
