import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';

/** Log-probabilities below this are reported as this: a softmax in float32 underflows there. */
const LEAST_PROBABILITY = 1e-37;
/** Added to logits of ids that could not be sampled; their probability becomes exactly 0. */
const BANNED = -1e9;
/** Logits held at a time. */
const CHUNK_VALUES = 1 << 22;

/** Reads U of the last states, and the tokens scored there: M draws, of which several may share a read. */
interface TokenReads {
  temperature_U: Float32Array;
  read_M: Int32Array;
  targets_M: Int32Array;
  bannedIds: readonly number[];
}

export interface TokenValues {
  logprobs_M: Float32Array;
  entropies_M: Float32Array;
}

/** ∂L/∂logp and ∂L/∂entropy of each draw. */
export interface TokenGrads {
  gradLogp_M: Float32Array;
  gradEntropy_M?: Float32Array;
}

interface Chunk {
  from: number;
  to: number;
  members: Int32Array;
}

/**
 * Next-token distributions at the read states only, a chunk of the vocabulary projection at a time. `objective` sees
 * every draw's log-probability and entropy and answers with their gradient, or null when only values are wanted.
 *
 * @returns ∂unit [U, d] and ∂head [V, d]
 */
export function tokenOutput(
  ops: Ops,
  unit: Tensor,
  head: Tensor,
  reads: TokenReads,
  objective: (values: TokenValues) => TokenGrads | null,
  wantEntropy: boolean,
): { dUnit: Tensor; dHead: Tensor } | null {
  const U = reads.temperature_U.length;
  const V = head.shape[0]!;
  const chunks = cutReads(reads.read_M, U, Math.max(1, Math.floor(CHUNK_VALUES / V)));
  const M = reads.read_M.length;
  const values: TokenValues = { logprobs_M: new Float32Array(M), entropies_M: new Float32Array(M) };
  const { tf } = ops;
  const rows = (chunk: Chunk): Tensor =>
    chunks.length === 1 ? unit : ops.slice(unit, [chunk.from, 0], [chunk.to - chunk.from, unit.shape[1]!]);

  let kept: Tensor | null = null;
  for (const chunk of chunks) {
    const probs = tf.tidy(() => {
      const p = ops.softmax(logits(ops, rows(chunk), head, reads, chunk));
      readChosen(ops, p, reads, chunk, values, wantEntropy);
      return p;
    });
    if (chunks.length === 1) kept = probs;
    else probs.dispose();
  }
  const grads = objective(values);
  if (!grads) {
    kept?.dispose();
    return null;
  }
  const dUnits: Tensor[] = [];
  let dHead: Tensor | null = null;
  for (const chunk of chunks) {
    const part = tf.tidy(() => {
      const x = rows(chunk);
      const probs = kept ?? ops.softmax(logits(ops, x, head, reads, chunk));
      return chunkGrads(ops, x, head, probs, reads, chunk, grads, values);
    });
    dUnits.push(part.dUnit);
    dHead = dHead ? takeSum(ops, dHead, part.dHead) : part.dHead;
  }
  kept?.dispose();
  const dUnit = dUnits.length === 1 ? dUnits[0]! : ops.concat(dUnits, 0);
  return { dUnit, dHead: dHead! };
}

/** a + b, both used up. */
function takeSum(ops: Ops, a: Tensor, b: Tensor): Tensor {
  const sum = ops.add(a, b);
  ops.tf.dispose([a, b]);
  return sum;
}

function cutReads(read_M: Int32Array, U: number, size: number): Chunk[] {
  const count = Math.max(1, Math.ceil(U / size));
  const members: number[][] = Array.from({ length: count }, () => []);
  read_M.forEach((read, m) => members[Math.floor(read / size)]!.push(m));
  return members.map((list, c) => ({
    from: c * size,
    to: Math.min(U, (c + 1) * size),
    members: Int32Array.from(list),
  }));
}

/** As the sampler had them: over the temperature, banned ids out. */
function logits(ops: Ops, unit: Tensor, head: Tensor, reads: TokenReads, { from, to }: Chunk): Tensor {
  let out = ops.matMul(unit, head, false, true);
  const temperature = reads.temperature_U.subarray(from, to);
  if (temperature.some((x) => x !== 1)) {
    out = ops.mul(
      out,
      ops.tf.tensor(
        temperature.map((x) => 1 / x),
        [to - from, 1],
      ),
    );
  }
  if (reads.bannedIds.length) {
    const mask = new Float32Array(head.shape[0]!);
    for (const id of reads.bannedIds) mask[id] = BANNED;
    out = ops.add(out, ops.tf.tensor1d(mask));
  }
  return out;
}

/** Places of a chunk's chosen probabilities in its flattened [rows, V]. */
const flatPlaces = (reads: TokenReads, { from, members }: Chunk, V: number): Int32Array =>
  members.map((m) => (reads.read_M[m]! - from) * V + reads.targets_M[m]!);

function readChosen(
  ops: Ops,
  probs: Tensor,
  reads: TokenReads,
  chunk: Chunk,
  values: TokenValues,
  wantEntropy: boolean,
): void {
  const V = probs.shape[1]!;
  const flat = ops.tf.tensor1d(flatPlaces(reads, chunk, V), 'int32');
  const chosen = ops.gather(ops.reshape(probs, [probs.shape[0]! * V]), flat);
  const logprobs = ops.log(ops.maximum(chosen, ops.constant(LEAST_PROBABILITY))).dataSync();
  chunk.members.forEach((m, i) => (values.logprobs_M[m] = logprobs[i]!));
  if (!wantEntropy) return;
  const logs = ops.log(ops.maximum(probs, ops.constant(LEAST_PROBABILITY)));
  const negative = ops.sum(ops.mul(probs, logs), [1]).dataSync();
  chunk.members.forEach((m) => (values.entropies_M[m] = -negative[reads.read_M[m]! - chunk.from]!));
}

/**
 * ∂unit and ∂head of a chunk. Over the logits z of a read, ∂logp = onehot − p and ∂entropy = −p·(log p + H), summed over its
 * draws, all over the temperature. Without an entropy term no array of the size of the logits is made: draws scale rows of
 * the small factors of the products with p, and the chosen tokens are rows taken away.
 */
function chunkGrads(
  ops: Ops,
  unit: Tensor,
  head: Tensor,
  probs: Tensor,
  reads: TokenReads,
  chunk: Chunk,
  { gradLogp_M, gradEntropy_M }: TokenGrads,
  { entropies_M }: TokenValues,
): { dUnit: Tensor; dHead: Tensor } {
  const { tf } = ops;
  const [rows, V] = probs.shape as [number, number];
  const sums = new Float32Array(rows);
  const slope = new Float32Array(rows);
  const entropy = new Float32Array(rows);
  const chosen = new Float32Array(chunk.members.length);
  chunk.members.forEach((m, i) => {
    const row = reads.read_M[m]! - chunk.from;
    const temperature = reads.temperature_U[reads.read_M[m]!]!;
    chosen[i] = -gradLogp_M[m]! / temperature;
    sums[row]! += chosen[i]!;
    if (!gradEntropy_M) return;
    slope[row]! -= gradEntropy_M[m]! / temperature;
    entropy[row] = entropies_M[m]!;
  });
  const scale = tf.tensor(sums, [rows, 1]);
  const weight = tf.tensor(chosen, [chosen.length, 1]);
  const read = tf.tensor1d(
    chunk.members.map((m) => reads.read_M[m]! - chunk.from),
    'int32',
  );
  const target = tf.tensor1d(
    chunk.members.map((m) => reads.targets_M[m]!),
    'int32',
  );
  const taken = {
    dUnit: ops.segmentSum(ops.mul(ops.gather(head, target), weight), read, rows),
    dHead: ops.segmentSum(ops.mul(ops.gather(unit, read), weight), target, V),
  };
  if (!gradEntropy_M) {
    return {
      dUnit: ops.sub(ops.mul(ops.matMul(probs, head), scale), taken.dUnit),
      dHead: ops.sub(ops.matMul(probs, ops.mul(unit, scale), true), taken.dHead),
    };
  }
  const logs = ops.log(ops.maximum(probs, ops.constant(LEAST_PROBABILITY)));
  const surprise = ops.add(logs, tf.tensor(entropy, [rows, 1]));
  const factor = ops.add(scale, ops.mul(surprise, tf.tensor(slope, [rows, 1])));
  const scaled = ops.mul(probs, factor);
  return {
    dUnit: ops.sub(ops.matMul(scaled, head), taken.dUnit),
    dHead: ops.sub(ops.matMul(scaled, unit, true), taken.dHead),
  };
}
