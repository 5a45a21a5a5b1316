import type { Ops } from '../tf/ops.js';
import type { Tensor } from '../tf/load.js';

const ITERATIONS = 5;
const [A, B, C] = [3.4445, -4.775, 2.0315] as const;

export interface MuonStep {
  lr: number;
  momentum: number;
  weightDecay: number;
}

/**
 * Muon: momentum, then a Newton-Schulz iteration pushes the update's singular values towards 1, then a step of size
 * 0.2·sqrt(larger side) so that it moves weights about as far as AdamW would. Matrices of one shape (up to transposition)
 * go through the iteration as one batch. New tensors; the old ones stay the caller's.
 *
 * @returns per name: the new matrix and its momentum
 */
export function muonStep(
  ops: Ops,
  params: ReadonlyMap<string, Tensor>,
  grads: ReadonlyMap<string, Tensor>,
  momenta: ReadonlyMap<string, Tensor>,
  { lr, momentum, weightDecay }: MuonStep,
): Map<string, { param: Tensor; momentum: Tensor }> {
  const s = (value: number): Tensor => ops.tf.scalar(value);
  const groups = new Map<string, { name: string; update: Tensor; flip: boolean }[]>();
  const buffers = new Map<string, Tensor>();
  for (const [name, grad] of grads) {
    const old = momenta.get(name);
    const buffer = old ? ops.add(ops.mul(old, s(momentum)), grad) : ops.alias(grad);
    buffers.set(name, buffer);
    const nesterov = ops.add(grad, ops.mul(buffer, s(momentum)));
    const [rows, columns] = grad.shape as [number, number];
    const flip = rows > columns;
    const update = flip ? ops.transpose(nesterov, [1, 0]) : nesterov;
    const key = update.shape.join();
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key)!.push({ name, update, flip });
  }
  const out = new Map<string, { param: Tensor; momentum: Tensor }>();
  for (const members of groups.values()) {
    const orthogonal = ops.unpack(orthogonalise(ops, ops.pack(members.map((member) => member.update))));
    members.forEach(({ name, flip }, i) => {
      const param = params.get(name)!;
      const update = flip ? ops.transpose(orthogonal[i]!, [1, 0]) : orthogonal[i]!;
      const step = ops.mul(update, s(lr * 0.2 * Math.sqrt(Math.max(...param.shape))));
      const decayed = ops.mul(param, s(1 - lr * weightDecay));
      out.set(name, { param: ops.sub(decayed, step), momentum: buffers.get(name)! });
    });
  }
  return out;
}

/** Newton-Schulz on a batch [n, r, c] with r ≤ c. */
function orthogonalise(ops: Ops, x: Tensor): Tensor {
  const norm = ops.sqrt(ops.sum(ops.square(x), [1, 2], true));
  let u = ops.div(x, ops.add(norm, ops.constant(1e-7)));
  for (let i = 0; i < ITERATIONS; i++) {
    const gram = ops.batchMatMul(u, u, false, true);
    const polynomial = ops.add(
      ops.mul(gram, ops.constant(B)),
      ops.mul(ops.batchMatMul(gram, gram), ops.constant(C)),
    );
    u = ops.add(ops.mul(u, ops.constant(A)), ops.batchMatMul(polynomial, u));
  }
  return u;
}
