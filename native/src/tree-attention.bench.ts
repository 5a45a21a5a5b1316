// Attention over packed trees beside PyTorch: scaled_dot_product_attention with a dense boolean mask (and is_causal on the chain),
// FlexAttention where it compiles, and a tuned matrix product of the same number of operations as the yardstick. Shapes: a chain,
// a trunk with leaves (peers.md: 20 leaves a tree, 16 samples of one prompt), and recorded rollouts of real harnesses.
import {
  treeAttention,
  treeAttentionBackward,
  type TreeAttentionInput,
  type TreeAttentionOptions,
} from '@treeward/native';
import {
  assertClose,
  fractionRow,
  noise,
  row,
  time,
  type BenchContext,
  type OperatorBench,
  type Row,
} from './harness.bench.js';
import { bfloat16 } from './testing/close.js';
import { recordedRollouts } from './testing/recorded-rollouts.js';
import type { PeerArray, TorchCase, TorchPeer } from './testing/torch-peer.js';
import { treeAttentionReference } from './testing/tree-attention-reference.js';

interface Shape {
  name: string;
  leaves: number;
  options: TreeAttentionOptions;
  end_K: Int32Array;
}

const DIRECTIONS = ['forward', 'backward', 'both'] as const;
type Direction = (typeof DIRECTIONS)[number];

/** `leaves` branches below a trunk. */
function brush(trunk: number, leaves: number, branch: number): Int32Array {
  const K = trunk + leaves * branch;
  return Int32Array.from({ length: K }, (_, k) =>
    k < trunk ? K : trunk + (Math.floor((k - trunk) / branch) + 1) * branch,
  );
}

/** A tree of nodes with parents before children, packed in depth-first order; lengths scaled to about `most` tokens. */
function packed(
  parent_N: readonly number[],
  tokens_N: readonly number[],
  most: number,
): { end_K: Int32Array; leaves: number } {
  const scale = Math.min(1, most / tokens_N.reduce((sum, n) => sum + n, 0));
  const children = parent_N.map((_, n) => parent_N.flatMap((p, c) => (p === n ? [c] : [])));
  const end: number[] = [];
  const place = (n: number): void => {
    const first = end.length;
    const own = Math.max(1, Math.round(tokens_N[n]! * scale));
    for (let i = 0; i < own; i++) end.push(0);
    children[n]!.forEach(place);
    end.fill(end.length, first, first + own);
  };
  parent_N.forEach((p, n) => p < 0 && place(n));
  return { end_K: Int32Array.from(end), leaves: children.filter(({ length }) => length === 0).length };
}

function shapes(quick: boolean): Shape[] {
  const small = { heads: 4, keyHeads: 2, dim: 32 };
  const usual = { heads: 4, keyHeads: 2, dim: 64 };
  const wide = { heads: 2, keyHeads: 1, dim: 128 };
  const made = (
    name: string,
    options: TreeAttentionOptions,
    trunk: number,
    leaves: number,
    branch: number,
  ): Shape => ({
    name,
    leaves,
    options,
    end_K: brush(trunk, leaves, branch),
  });
  if (quick) return [made('chain', small, 512, 1, 0), made('trunk=256/leaves=4x64', small, 256, 4, 64)];
  const recorded = recordedRollouts().map(({ name, parent_N, tokens_N }) => ({
    name: `recorded/${name}`,
    options: usual,
    ...packed(parent_N, tokens_N, 2048),
  }));
  return [
    made('chain', usual, 2048, 1, 0),
    made('trunk=512/leaves=8x128', small, 512, 8, 128),
    made('trunk=512/leaves=20x64', usual, 512, 20, 64),
    made('trunk=1024/leaves=16x64', wide, 1024, 16, 64),
    ...recorded,
  ];
}

type Operands = TreeAttentionInput & { gradOutput_QHD: Float32Array };

function operands({
  end_K,
  options: { heads, keyHeads, dim },
}: Shape): Operands & Record<string, Float32Array | Int32Array> {
  const uniform = noise();
  const floats = (n: number): Float32Array => Float32Array.from({ length: n }, () => 2 * uniform() - 1);
  const K = end_K.length;
  return {
    query_QHD: floats(K * heads * dim),
    key_KJD: floats(K * keyHeads * dim),
    value_KJD: floats(K * keyHeads * dim),
    gradOutput_QHD: floats(K * heads * dim),
    position_Q: Int32Array.from({ length: K }, (_, k) => k),
    end_K,
  };
}

function peerInputs(
  input: Operands,
  { heads, keyHeads, dim }: TreeAttentionOptions,
): Record<string, PeerArray> {
  const shaped = (data: Float32Array | Uint16Array, rows: number): PeerArray => ({
    data,
    shape: [-1, rows, dim],
  });
  return {
    query_QHD: shaped(input.query_QHD, heads),
    key_KJD: shaped(input.key_KJD, keyHeads),
    value_KJD: shaped(input.value_KJD, keyHeads),
    gradOutput_QHD: shaped(input.gradOutput_QHD, heads),
    position_Q: input.position_Q,
    end_K: input.end_K,
  };
}

/** The calls to time: each direction of the kernel, and of each of PyTorch's ways that there is. */
async function peers(
  torch: TorchPeer,
  input: Operands,
  shape: Shape,
  quick: boolean,
): Promise<Map<string, TorchCase>> {
  const arrays = peerInputs(input, shape.options);
  const cases = new Map<string, TorchCase>();
  for (const direction of DIRECTIONS) {
    for (const causal of shape.leaves === 1 ? [false, true] : [false]) {
      const made = await torch.prepare('torch_peer_attention.sdpa', arrays, { direction, causal });
      cases.set(`${causal ? 'causal' : 'sdpa'}/${direction}`, made);
    }
  }
  if (!quick && shape.options.dim === 64) {
    const flex = await torch.prepare('torch_peer_attention.flex', arrays).catch((error: unknown) => {
      process.stderr.write(`tree_attention/${shape.name}/vs_flex left out: ${String(error).slice(0, 300)}\n`);
    });
    if (flex) cases.set('flex/forward', flex);
  }
  return cases;
}

const AGAINST: Record<string, string> = {
  sdpa: 'torch SDPA with a dense boolean mask',
  causal: 'torch SDPA with is_causal',
  flex: 'torch FlexAttention, compiled',
};

async function benchShape(shape: Shape, { quick, torch }: BenchContext): Promise<Row[]> {
  const { options } = shape;
  const input = operands(shape);
  const forward = treeAttention(input, options);
  const calls: Record<Direction, () => unknown> = {
    forward: () => treeAttention(input, options),
    backward: () => treeAttentionBackward({ ...input, ...forward }, options),
    both: () => treeAttentionBackward({ ...input, ...treeAttention(input, options) }, options),
  };
  const half = {
    ...input,
    query_QHD: bfloat16(input.query_QHD as Float32Array).bits,
    key_KJD: bfloat16(input.key_KJD as Float32Array).bits,
    value_KJD: bfloat16(input.value_KJD as Float32Array).bits,
  };
  const cases = torch ? await peers(torch, input, shape, quick) : new Map<string, TorchCase>();
  for (const [name, peer] of cases) {
    const theirs = await peer.results();
    assertClose(theirs['output_QHD']!, forward.output_QHD, 1e-4, `torch ${name} of ${shape.name}`);
  }
  const K = shape.end_K.length;
  const [m, depth] = [1024, 256];
  const random = noise();
  const square = { data: Float32Array.from({ length: m * depth }, random), shape: [m, depth] };
  const product = await torch?.prepare('torch_peer_attention.product', { left_MK: square, right_NK: square });
  const t = await time(
    {
      ...calls,
      bf16: () => treeAttentionBackward({ ...half, ...treeAttention(half, options) }, options),
      ...(product ? { product: () => product.run() } : {}),
      ...Object.fromEntries([...cases].map(([name, peer]) => [name, () => peer.run()])),
    },
    quick,
  );
  const cold = await time({ both: calls.both }, quick, { cold: true });
  let pairs = 0;
  for (let k = 0; k < K; k++) pairs += shape.end_K[k]! - k;
  const config = {
    tokens: K,
    leaves: shape.leaves,
    seen: pairs / K ** 2,
    ...options,
    ...(torch ? { peer: torch.versions } : {}),
  };
  const name = `tree_attention/${shape.name}`;
  const rows: Row[] = [];
  for (const direction of DIRECTIONS) {
    rows.push(row(`${name}/${direction}`, t[direction]!, config));
    for (const way of Object.keys(AGAINST)) {
      const theirs = t[`${way}/${direction}`];
      const versus = { against: AGAINST[way]!, p50: theirs?.p50 ?? 0 };
      const suffix = direction === 'both' ? '' : `/${direction}`;
      if (theirs) rows.push(row(`${name}${suffix}/vs_${way}`, t[direction]!, config, versus));
    }
  }
  rows.push(row(`${name}/bf16`, t['bf16']!, config), row(`${name}/cold`, cold['both']!, config));
  if (product) {
    const gflops = (products: number, ms: number): number =>
      (products * 2 * pairs * options.heads * options.dim) / ms / 1e6;
    const tuned = (2 * m * m * depth) / t['product']!.p50 / 1e6;
    for (const [direction, products] of [
      ['forward', 2],
      ['both', 7],
    ] as const) {
      const own = gflops(products, t[direction]!.p50);
      rows.push(
        fractionRow(`${name}/${direction}/gemm_fraction`, own / tuned, t[direction]!.n, {
          ...config,
          gflops: own,
          tuned,
        }),
      );
    }
  }
  for (const peer of [...cases.values(), ...(product ? [product] : [])]) await peer.release();
  return rows;
}

export const treeAttentionBench: OperatorBench = async (context) => {
  const small: Shape = {
    name: 'parity',
    leaves: 3,
    options: { heads: 4, keyHeads: 2, dim: 32 },
    end_K: brush(40, 3, 20),
  };
  const input = operands(small);
  const want = treeAttentionReference(input, small.options);
  assertClose(treeAttention(input, small.options).output_QHD, want.output_QHD, 1e-5, 'tree_attention');
  const rows: Row[] = [];
  for (const shape of shapes(context.quick)) rows.push(...(await benchShape(shape, context)));
  return rows;
};
