// Chains of the shapes published for flat kernels, and DAGs of calls; as a share of copy bandwidth: 12 bytes per token.
import { causalGae, type CausalGaeInput } from '@treeward/native';
import { assertClose, fractionRow, noise, row, time, type OperatorBench } from './harness.bench.js';
import { causalGaeReference } from './testing/causal-gae-reference.js';

/** R rollouts of C calls of N tokens; every fourth call has a second successor. */
function batch(R: number, C: number, N: number): CausalGaeInput {
  const uniform = noise();
  const successors = Array.from({ length: R * C }, (_, call) => {
    const left = C - 1 - (call % C);
    if (left === 0) return [];
    return left > 1 && call % 4 === 0 ? [call + 1, call + 2] : [call + 1];
  });
  const offset = (lengths: readonly number[]): Int32Array => {
    const out = new Int32Array(lengths.length + 1);
    lengths.forEach((length, i) => (out[i + 1] = out[i]! + length));
    return out;
  };
  return {
    values_T: Float32Array.from({ length: R * C * N }, () => uniform() - 0.5),
    callOffset_R1: Int32Array.from({ length: R + 1 }, (_, r) => r * C),
    tokenOffset_C1: Int32Array.from({ length: R * C + 1 }, (_, c) => c * N),
    successorOffset_C1: offset(successors.map(({ length }) => length)),
    successor_L: Int32Array.from(successors.flat()),
    weight_L: Float32Array.from(successors.flatMap((s) => s.map(() => 1 / s.length))),
    reward_C: Float32Array.from(successors, (s) => (s.length === 0 ? 1 : 0)),
  };
}

export const causalGaeBench: OperatorBench = async ({ quick, copyBytesPerMs }) => {
  const options = { gamma: 0.99, lambda: 0.95 };
  const shapes: [string, number, number, number][] = quick
    ? [
        ['chain', 512, 1, 1024],
        ['dag', 512, 16, 64],
      ]
    : [
        ['chain', 128, 1, 4096],
        ['chain', 8192, 1, 128],
        ['chain', 8192, 1, 1024],
        ['dag', 2048, 16, 128],
        ['dag', 8192, 16, 20],
      ];
  const rows = [];
  for (const [kind, R, C, N] of shapes) {
    const input = batch(R, C, N);
    const small = batch(Math.min(R, 20), C, N);
    assertClose(
      causalGae(small, options).advantages_T,
      causalGaeReference(small, options).advantages_T,
      1e-5,
      'causal_gae',
    );
    const t = await time({ native: () => causalGae(input, options) }, quick);
    const name = `causal_gae/${kind}/${R}x${C * N}`;
    const config = { rollouts: R, calls: C, tokensPerCall: N };
    const share = (12 * input.values_T.length) / t['native']!.p50 / copyBytesPerMs;
    rows.push(row(name, t['native']!, config));
    rows.push(
      fractionRow(`${name}/stream_fraction`, share, t['native']!.n, { ...config, bytesPerToken: 12 }),
    );
  }
  return rows;
};
