// A tree at once beside its root-to-leaf paths one by one, by the same kernel: what a trainer that linearises would run.
import { treeAttention, treeAttentionBackward, type TreeAttentionInput } from '@treeward/native';
import { assertClose, noise, row, time, type OperatorBench } from './harness.bench.js';
import { treeAttentionReference } from './testing/tree-attention-reference.js';

const options = { heads: 4, keyHeads: 2, dim: 32 };

/** `leaves` branches below a trunk. */
function tree(trunk: number, leaves: number, branch: number): TreeAttentionInput {
  const uniform = noise();
  const K = trunk + leaves * branch;
  const floats = (n: number): Float32Array => Float32Array.from({ length: n }, () => 2 * uniform() - 1);
  return {
    query_QHD: floats(K * options.heads * options.dim),
    key_KJD: floats(K * options.keyHeads * options.dim),
    value_KJD: floats(K * options.keyHeads * options.dim),
    position_Q: Int32Array.from({ length: K }, (_, k) => k),
    end_K: Int32Array.from({ length: K }, (_, k) =>
      k < trunk ? K : trunk + (Math.floor((k - trunk) / branch) + 1) * branch,
    ),
  };
}

export const treeAttentionBench: OperatorBench = async ({ quick }) => {
  const small = tree(40, 3, 20);
  assertClose(
    treeAttention(small, options).output_QHD,
    treeAttentionReference(small, options).output_QHD,
    1e-5,
    'tree_attention',
  );
  const rows = [];
  for (const [trunk, leaves, branch] of quick
    ? [[256, 4, 64]]
    : [
        [1024, 1, 1024],
        [512, 8, 128],
        [1024, 16, 128],
      ]) {
    const [packed, path] = [tree(trunk!, leaves!, branch!), tree(trunk! + branch!, 1, 0)];
    const both = (input: TreeAttentionInput): unknown => {
      const forward = treeAttention(input, options);
      return treeAttentionBackward({ ...input, ...forward, gradOutput_QHD: forward.output_QHD }, options);
    };
    const t = await time({ packed: () => both(packed), path: () => both(path) }, quick);
    const name = `tree_attention/trunk=${trunk}/leaves=${leaves}x${branch}`;
    const paths = { against: 'the same kernel on each root-to-leaf path', p50: leaves! * t['path']!.p50 };
    rows.push(row(`${name}/vs_paths`, t['packed']!, { trunk, leaves, branch, ...options }, paths));
  }
  return rows;
};
