// Forward and backward, in GFLOP/s (2 T D V forward, 6 T D V backward with the recomputed logits).
import { linearLogprob, linearLogprobBackward } from '@treeward/native';
import { assertClose, noise, row, time, type OperatorBench } from './harness.bench.js';
import { linearLogprobReference } from './testing/linear-logprob-reference.js';

function draw(T: number, D: number, V: number): Parameters<typeof linearLogprobBackward>[0] {
  const uniform = noise();
  const floats = (n: number, scale: number): Float32Array =>
    Float32Array.from({ length: n }, () => scale * (uniform() - 0.5));
  const input = {
    hidden_TD: floats(T * D, 2),
    weight_VD: floats(V * D, 0.2),
    chosen_T: Int32Array.from({ length: T }, () => Math.floor(uniform() * V)),
  };
  return {
    ...input,
    ...linearLogprob(input, { hiddenSize: D }),
    gradLogp_T: floats(T, 1),
    gradEntropy_T: floats(T, 0.1),
  };
}

export const linearLogprobBench: OperatorBench = async ({ quick }) => {
  const rows = [];
  const small = draw(20, 16, 300);
  const want = linearLogprobReference(small, { hiddenSize: 16 });
  assertClose(small.entropy_T, want.entropy_T, 3e-5, 'linear_logprob');
  for (const [T, D, V] of quick
    ? [[256, 128, 2048]]
    : [
        [1024, 128, 4096],
        [1024, 256, 4096],
        [512, 1024, 8192],
      ]) {
    const input = draw(T!, D!, V!);
    const options = { hiddenSize: D! };
    const t = await time(
      { forward: () => linearLogprob(input, options), backward: () => linearLogprobBackward(input, options) },
      quick,
    );
    for (const [direction, products] of [
      ['forward', 1],
      ['backward', 3],
    ] as const) {
      const gflops = (products * 2 * T! * D! * V!) / t[direction]!.p50 / 1e6;
      rows.push(
        row(`linear_logprob/T=${T}/D=${D}/V=${V}/${direction}`, t[direction]!, {
          T,
          D,
          V,
          gflops_per_s: gflops,
        }),
      );
    }
  }
  return rows;
};
