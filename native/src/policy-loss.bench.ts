// Against the float64 TypeScript reference, and as a share of copy bandwidth: 24 bytes per token. Inputs near on-policy as in
// training. Only the kernel checks its inputs and computes the statistics.
import { policyLoss, valueLoss, type PolicyLossInput, type PolicyLossOptions } from '@treeward/native';
import { assertClose, fractionRow, noise, row, time, type OperatorBench } from './harness.bench.js';
import { policyLossReference } from './testing/policy-loss-reference.js';
import { valueLossReference } from './testing/value-loss-reference.js';

const options: PolicyLossOptions = { clipLow: 0.2, clipHigh: 0.28, truncation: 2, normaliser: 1000 };

function inputs(T: number): PolicyLossInput {
  const uniform = noise();
  const logpOld_T = Float32Array.from({ length: T }, () => -4 * uniform());
  return {
    logpOld_T,
    logp_T: logpOld_T.map((x) => x + 0.6 * (uniform() - 0.5)),
    logpRollout_T: logpOld_T.map((x) => x + 0.1 * (uniform() - 0.5)),
    advantages_T: logpOld_T.map(() => 2 * uniform() - 1),
    mask_T: logpOld_T.map(() => (uniform() < 0.3 ? 1 : 0)),
  };
}

export const policyLossBench: OperatorBench = async ({ quick, copyBytesPerMs }) => {
  const rows = [];
  for (const T of quick ? [2_000, 512_000] : [2_000, 64_000, 512_000, 4_000_000]) {
    const input = inputs(T);
    assertClose(
      [policyLoss(input, options).loss],
      [policyLossReference(input, options).loss],
      1e-6,
      `policy_loss/T=${T}`,
    );
    const t = await time(
      { native: () => policyLoss(input, options), reference: () => policyLossReference(input, options) },
      quick,
    );
    rows.push(
      row(
        `policy_loss/T=${T}`,
        t['native']!,
        { T },
        { against: 'f64 TypeScript reference', p50: t['reference']!.p50 },
      ),
    );
    if (T >= 512_000) {
      const share = (24 * T) / t['native']!.p50 / copyBytesPerMs;
      rows.push(
        fractionRow(`policy_loss/T=${T}/stream_fraction`, share, t['native']!.n, { T, bytesPerToken: 24 }),
      );
    }
  }
  return rows;
};

export const valueLossBench: OperatorBench = async ({ quick, copyBytesPerMs }) => {
  const T = quick ? 512_000 : 4_000_000;
  const { logp_T: values_T, logpOld_T: valuesOld_T, advantages_T: targets_T, mask_T } = inputs(T);
  const input = { values_T, valuesOld_T, targets_T, mask_T };
  const lossOptions = { clip: 0.2, normaliser: 1000 };
  assertClose(
    [valueLoss(input, lossOptions).loss],
    [valueLossReference(input, lossOptions).loss],
    1e-6,
    'value_loss',
  );
  const t = await time({ native: () => valueLoss(input, lossOptions) }, quick);
  const share = (20 * T) / t['native']!.p50 / copyBytesPerMs;
  return [
    row(`value_loss/T=${T}`, t['native']!, { T }),
    fractionRow(`value_loss/T=${T}/stream_fraction`, share, t['native']!.n, { T, bytesPerToken: 20 }),
  ];
};
