// As a share of copy bandwidth (24 bytes per token), and beside PyTorch eager: loss, gradient by autograd and statistics of the
// same. Inputs near on-policy as in training. Only the kernel checks its inputs.
import { policyLoss, type PolicyLossInput, type PolicyLossOptions } from '@treeward/native';
import { assertClose, copy, noise, row, streamRow, time, type OperatorBench } from './harness.bench.js';
import { policyLossReference } from './testing/policy-loss-reference.js';

const options: PolicyLossOptions = { clipLow: 0.2, clipHigh: 0.28, truncation: 2, normaliser: 1000 };
const BYTES = 24;

function inputs(T: number): PolicyLossInput & Record<string, Float32Array> {
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

export const policyLossBench: OperatorBench = async ({ quick, torch }) => {
  const rows = [];
  const sizes = quick ? [2_000, 1_000_000] : [2_000, 64_000, 512_000, 4_000_000, 16_000_000];
  for (const T of sizes) {
    const input = inputs(T);
    const gradLogp_T = new Float32Array(T).fill(1);
    const mine = policyLoss(input, options, { gradLogp_T });
    const want = policyLossReference(input, options);
    assertClose([mine.loss], [want.loss], 1e-6 * Math.sqrt(T / 1000), `policy_loss/T=${T}`);
    const strays = Math.ceil(T / 100_000);
    assertClose(gradLogp_T, want.gradLogp_T, 1e-8, `policy_loss/T=${T} gradient`, strays);
    const whole = await torch?.prepare('torch_peer_losses.policy_loss', input, {
      ...options,
      statistics: true,
    });
    const bare = await torch?.prepare('torch_peer_losses.policy_loss', input, {
      ...options,
      statistics: false,
    });
    if (whole) {
      const theirs = await whole.results();
      assertClose(theirs['gradLogp_T']!, gradLogp_T, 1e-8, `torch policy_loss/T=${T} gradient`, strays);
      const { approxKl, clipfrac, ratioMax, ess, truncatedFrac, rolloutKl } = mine.stats;
      const stats = [approxKl, clipfrac, ratioMax, ess, truncatedFrac, rolloutKl];
      assertClose(theirs['stats']!, stats, 1e-3, `torch policy_loss/T=${T} statistics`);
    }
    const t = await time(
      {
        copy,
        into: () => policyLoss(input, options, { gradLogp_T }),
        fresh: () => policyLoss(input, options),
        ...(T <= 64_000 ? { reference: () => policyLossReference(input, options) } : {}),
        ...(whole && bare ? { torch: () => whole.run(), bare: () => bare.run() } : {}),
      },
      quick,
    );
    const name = `policy_loss/T=${T}`;
    const reference = t['reference'] && { against: 'f64 TypeScript reference', p50: t['reference'].p50 };
    rows.push(row(name, t['fresh']!, { T }, reference));
    if (T >= 512_000) {
      const note = { T, bytesPerToken: BYTES, output: 'reused, as in STREAM' };
      rows.push(streamRow(`${name}/stream_fraction`, BYTES * T, t['into']!, t['copy']!, note));
      const fresh = { T, bytesPerToken: BYTES, output: 'a new array each time' };
      rows.push(streamRow(`${name}/fresh/stream_fraction`, BYTES * T, t['fresh']!, t['copy']!, fresh));
      if (T === sizes.at(-1))
        rows.push(streamRow('policy_loss/stream_fraction', BYTES * T, t['into']!, t['copy']!, note));
      const cold = await time({ native: () => policyLoss(input, options, { gradLogp_T }) }, quick, {
        cold: true,
      });
      rows.push(row(`${name}/cold`, cold['native']!, { T, output: 'reused' }));
    }
    if (torch && t['torch'] && t['bare']) {
      const config = { T, threads: torch.threads, peer: torch.versions };
      const eager = { against: 'torch eager, the same statistics', p50: t['torch'].p50 };
      const without = { against: 'torch eager without statistics', p50: t['bare'].p50 };
      rows.push(row(`${name}/vs_torch`, t['fresh']!, config, eager));
      rows.push(row(`${name}/bare/vs_torch`, t['fresh']!, config, without));
      if (T === sizes.at(-1)) rows.push(row('policy_loss/vs_torch', t['fresh']!, config, eager));
    }
    await whole?.release();
    await bare?.release();
  }
  return rows;
};
