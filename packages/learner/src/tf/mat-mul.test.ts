import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadTensorFlow, type Tensor } from './load.js';
import { loadNativeOps } from './native-ops.js';

const tf = loadTensorFlow();
const native = loadNativeOps();
if (!native.available) throw new Error(native.reason);
const { matMul } = native.ops;
const random = (shape: number[], seed: number): Tensor => tf.randomNormal(shape, 0, 1, 'float32', seed);
type Data = Float32Array;

describe('matrix product', () => {
  const size = fc.integer({ min: 0, max: 70 });
  const large = fc.constantFrom<[number, number, number]>([7, 1500, 20], [300, 17, 600], [200, 33, 257]);
  test('is the product, whatever is transposed and wherever blocks end', () => {
    fc.assert(
      fc.property(
        fc.oneof({ weight: 6, arbitrary: fc.tuple(size, size, size) }, large),
        fc.boolean(),
        fc.boolean(),
        ([m, n, k], transposeA, transposeB) => {
          const a = random(transposeA ? [k, m] : [m, k], 1);
          const b = random(transposeB ? [n, k] : [k, n], 2);
          const got = matMul(a, b, transposeA, transposeB);
          expect(got.shape).toEqual([m, n]);
          const [a_, b_, got_] = [a, b, got].map((t) => t.dataSync()) as [Data, Data, Data];
          for (let i = 0; i < m; i++) {
            for (let j = 0; j < n; j += 1 + (n >> 6)) {
              let want = 0;
              for (let p = 0; p < k; p++) {
                want += a_[transposeA ? p * m + i : i * k + p]! * b_[transposeB ? j * k + p : p * n + j]!;
              }
              expect(Math.abs(got_[i * n + j]! - want)).toBeLessThan(1e-6 * (1 + k));
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test.each([
    ['rank', /b has the shape \[6\]/, () => matMul(tf.zeros([2, 6]), tf.zeros([6]))],
    [
      'size',
      /b has the shape \[5, 4\], must have \[6, 4\]/,
      () => matMul(tf.zeros([2, 6]), tf.zeros([5, 4])),
    ],
  ])('refuses a wrong %s', (_name, reason, call) => {
    expect(call).toThrow(reason);
  });
});
