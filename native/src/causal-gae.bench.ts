// Chains of the shapes published for flat kernels, DAGs of calls, and orders of recorded rollouts: as a share of copy bandwidth
// (12 bytes per token), and chains beside torchrl's vectorised GAE on packed rows.
import { causalGae, joinCausalOrders, type CausalGaeInput } from '@treeward/native';
import { assertClose, copy, noise, row, streamRow, time, type OperatorBench } from './harness.bench.js';
import { causalGaeReference } from './testing/causal-gae-reference.js';
import { recordedRollouts } from './testing/recorded-rollouts.js';

const options = { gamma: 0.99, lambda: 0.95 };
const BYTES = 12;

function offsets(lengths: readonly number[]): Int32Array {
  const out = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (out[i + 1] = out[i]! + length));
  return out;
}

function values(T: number): Float32Array {
  const uniform = noise();
  return Float32Array.from({ length: T }, () => uniform() - 0.5);
}

/** R rollouts of C calls of N tokens; every fourth call has a second successor. */
function grid(R: number, C: number, N: number): CausalGaeInput {
  const successors = Array.from({ length: R * C }, (_, call) => {
    const left = C - 1 - (call % C);
    if (left === 0) return [];
    return left > 1 && call % 4 === 0 ? [call + 1, call + 2] : [call + 1];
  });
  return {
    values_T: values(R * C * N),
    callOffset_R1: Int32Array.from({ length: R + 1 }, (_, r) => r * C),
    tokenOffset_C1: Int32Array.from({ length: R * C + 1 }, (_, c) => c * N),
    successorOffset_C1: offsets(successors.map(({ length }) => length)),
    successor_L: Int32Array.from(successors.flat()),
    weight_L: Float32Array.from(successors.flatMap((s) => s.map(() => 1 / s.length))),
    reward_C: Float32Array.from(successors, (s) => (s.length === 0 ? 1 : 0)),
  };
}

/** R rollouts as recorded from real harnesses, taken in turns; `longer` times as many tokens in each call. */
function recorded(R: number, longer: number): CausalGaeInput {
  const shapes = recordedRollouts();
  const rollouts = Array.from({ length: R }, (_, r) => shapes[r % shapes.length]!);
  const order = joinCausalOrders(
    rollouts.map((rollout) => ({
      offset_C1: Int32Array.from(rollout.successorOffset_C1),
      successor_L: Int32Array.from(rollout.successor_L),
      weight_L: Float32Array.from(rollout.weight_L),
    })),
  );
  const tokenOffset_C1 = offsets(
    rollouts.flatMap(({ tokens_C }) => tokens_C.map((tokens) => longer * tokens)),
  );
  return {
    ...order,
    tokenOffset_C1,
    values_T: values(tokenOffset_C1.at(-1)!),
    reward_C: Float32Array.from({ length: tokenOffset_C1.length - 1 }, (_, c) =>
      order.successorOffset_C1[c] === order.successorOffset_C1[c + 1] ? 1 : 0,
    ),
  };
}

interface Shape {
  name: string;
  input: () => CausalGaeInput;
  small: () => CausalGaeInput;
  config: Record<string, number>;
  /** [rows, tokens] when it is also packed rows of chains. */
  rows?: [number, number];
}
const gridShape = (kind: 'chain' | 'dag', R: number, C: number, N: number): Shape => ({
  name: `${kind}/${R}x${C * N}`,
  input: () => grid(R, C, N),
  small: () => grid(Math.min(R, 20), C, N),
  config: { rollouts: R, calls: C, tokensPerCall: N },
  ...(kind === 'chain' ? { rows: [R, N] } : {}),
});
const recordedShape = (R: number, longer: number): Shape => ({
  name: `recorded/${R}${longer === 1 ? '' : `/calls-x${longer}`}`,
  input: () => recorded(R, longer),
  small: () => recorded(20, longer),
  config: { rollouts: R, longer },
});

export const causalGaeBench: OperatorBench = async ({ quick, torch }) => {
  const shapes = quick
    ? [gridShape('dag', 512, 16, 128), recordedShape(2048, 1), gridShape('chain', 1024, 1, 1024)]
    : [
        gridShape('dag', 2048, 16, 128),
        gridShape('dag', 8192, 16, 20),
        recordedShape(8192, 1),
        recordedShape(2048, 8),
        gridShape('chain', 128, 1, 4096),
        gridShape('chain', 2048, 1, 4096),
        gridShape('chain', 8192, 1, 128),
        gridShape('chain', 8192, 1, 1024),
      ];
  const rows = [];
  for (const shape of shapes) {
    const small = shape.small();
    const want = causalGaeReference(small, options);
    assertClose(causalGae(small, options).advantages_T, want.advantages_T, 1e-5, 'causal_gae');
    const input = shape.input();
    const T = input.values_T.length;
    const into = { advantages_T: new Float32Array(T).fill(1), targets_T: new Float32Array(T).fill(1) };
    causalGae(input, options, into);

    const packed = shape.rows && { shape: shape.rows };
    const end = Float32Array.from({ length: packed ? T : 0 }, (_, t) =>
      (t + 1) % shape.rows![1] === 0 ? 1 : 0,
    );
    const peer =
      packed &&
      (await torch?.prepare(
        'torch_peer_losses.gae_rows',
        {
          values_RN: { ...packed, data: input.values_T },
          rewards_RN: { ...packed, data: end },
          done_RN: { ...packed, data: end },
        },
        options,
      ));
    // torchrl leaves out what counts less than 1e-7 of it.
    if (peer) assertClose((await peer.results())['advantages_RN']!, into.advantages_T, 1e-4, 'torchrl GAE');
    const t = await time(
      {
        copy,
        into: () => causalGae(input, options, into),
        fresh: () => causalGae(input, options),
        ...(peer ? { torchrl: () => peer.run() } : {}),
      },
      quick,
    );
    await peer?.release();
    const name = `causal_gae/${shape.name}`;
    const config = { ...shape.config, T, bytesPerToken: BYTES };
    const reused = { ...config, output: 'reused, as in STREAM' };
    rows.push(row(name, t['fresh']!, config));
    rows.push(streamRow(`${name}/stream_fraction`, BYTES * T, t['into']!, t['copy']!, reused));
    const fresh = { ...config, output: 'new arrays each time' };
    rows.push(streamRow(`${name}/fresh/stream_fraction`, BYTES * T, t['fresh']!, t['copy']!, fresh));
    const last = shape === shapes.at(-1);
    if (last) rows.push(streamRow('causal_gae/stream_fraction', BYTES * T, t['into']!, t['copy']!, reused));
    if (torch && t['torchrl']) {
      const versus = { against: 'torchrl vec_generalized_advantage_estimate', p50: t['torchrl'].p50 };
      const peerConfig = { ...config, threads: torch.threads, peer: torch.versions };
      rows.push(row(`${name}/vs_torchrl`, t['fresh']!, peerConfig, versus));
      if (last) rows.push(row('causal_gae/chain/vs_torchrl', t['fresh']!, peerConfig, versus));
    }
  }
  return rows;
};
