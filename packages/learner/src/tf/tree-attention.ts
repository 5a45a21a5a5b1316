import { treeAttention, treeAttentionBackward, type TreeAttentionOptions } from '@treeward/native';
import type { Tensor } from './load.js';
import { usableNativeOps, type TreeVisibility } from './native-ops.js';
import type { Ops } from './ops.js';

/** Which keys a query sees; see `TreeAttentionInput` of @treeward/native. */
export interface Visibility {
  position_Q: Int32Array;
  end_K: Int32Array;
  start_Q?: Int32Array;
  finish_K?: Int32Array;
  firstKey_Q?: Int32Array;
  lastKey_Q?: Int32Array;
}

interface Operands {
  q: Tensor;
  k: Tensor;
  v: Tensor;
}

/** Attention of one pass: every layer has the same sizes and visibility. */
export interface Attend {
  /** q [Q, H, h], k and v [K, J, h] → output [Q, H, h] and the log of the softmax's denominator [Q, H]. */
  forward: (operands: Operands) => { out: Tensor; lse: Tensor };
  backward: (
    operands: Operands,
    forward: { out: Tensor; lse: Tensor },
    dOut: Tensor,
  ) => { dq: Tensor; dk: Tensor; dv: Tensor };
}

/** Inside TensorFlow where the operators are built; otherwise the same kernels on copies of the tensors' values. */
export function attendWith(
  ops: Ops,
  sizes: { heads: number; kvHeads: number; headDim: number },
  visibility: Visibility,
): Attend {
  // Where the operators are not built the same kernel takes copies; it has a CUDA implementation outside of TensorFlow.
  const kernels = usableNativeOps();
  if (!kernels) return onCopies(ops, sizes, visibility);
  const ints = (values: Int32Array): Tensor => ops.tf.tensor1d(values, 'int32');
  const { position_Q, end_K, start_Q, finish_K, firstKey_Q, lastKey_Q } = visibility;
  const tensors: TreeVisibility = { position: ints(position_Q), end: ints(end_K) };
  if (start_Q && finish_K && firstKey_Q && lastKey_Q) {
    tensors.history = {
      start: ints(start_Q),
      finish: ints(finish_K),
      firstKey: ints(firstKey_Q),
      lastKey: ints(lastKey_Q),
    };
  }
  return {
    forward({ q, k, v }) {
      const { output, lse } = kernels.treeAttention(q, k, v, tensors);
      return { out: output, lse };
    },
    backward({ q, k, v }, { out, lse }, dOut) {
      const grads = kernels.treeAttentionGrad(q, k, v, tensors, { output: out, lse }, dOut);
      return { dq: grads.gradQuery, dk: grads.gradKey, dv: grads.gradValue };
    },
  };
}

const data = (tensor: Tensor): Float32Array => tensor.dataSync() as Float32Array;

function onCopies(
  ops: Ops,
  { heads, kvHeads, headDim }: { heads: number; kvHeads: number; headDim: number },
  visibility: Visibility,
): Attend {
  const options: TreeAttentionOptions = { heads, keyHeads: kvHeads, dim: headDim };
  const input = ({ q, k, v }: Operands): Parameters<typeof treeAttention>[0] => ({
    query_QHD: data(q),
    key_KJD: data(k),
    value_KJD: data(v),
    ...visibility,
  });
  return {
    forward(operands) {
      const { output_QHD, lse_QH } = treeAttention(input(operands), options);
      const [Q, H] = operands.q.shape as [number, number];
      return { out: ops.tf.tensor(output_QHD, operands.q.shape), lse: ops.tf.tensor(lse_QH, [Q, H]) };
    },
    backward(operands, { out, lse }, dOut) {
      const result = treeAttentionBackward(
        { ...input(operands), output_QHD: data(out), lse_QH: data(lse), gradOutput_QHD: data(dOut) },
        options,
      );
      return {
        dq: ops.tf.tensor(result.gradQuery_QHD, operands.q.shape),
        dk: ops.tf.tensor(result.gradKey_KJD, operands.k.shape),
        dv: ops.tf.tensor(result.gradValue_KJD, operands.v.shape),
      };
    },
  };
}
