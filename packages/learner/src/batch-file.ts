import { readTensors, TreewardError, writeTensors, type NamedTensor, type TensorData } from '@treeward/base';
import type { PackedTrees, Scores } from './types.js';

const vector = (data: TensorData): NamedTensor => ({ shape: [data.length], data });

/** A batch as a safetensors file: how it travels to the learner's process. */
export function writeBatch(path: string, batch: PackedTrees): void {
  writeTensors(
    path,
    new Map<string, NamedTensor>([
      ['rowStart_B1', vector(batch.rowStart_B1)],
      ['tokens_T', vector(batch.tokens_T)],
      ['owned_T', vector(batch.owned_T)],
      ['rolloutLogprobs_T', vector(batch.rolloutLogprobs_T)],
      ['advantages_T', vector(batch.advantages_T)],
      ['temperature_T', vector(batch.temperature_T)],
      ['rollout_B', vector(batch.rollout_B)],
    ]),
    { bannedIds: JSON.stringify(batch.bannedIds), numRollouts: String(batch.numRollouts) },
  );
}

/** @throws TreewardError LEARNER_E_BATCH naming the array that is missing, of the wrong type or of the wrong length */
export function readBatch(path: string): PackedTrees {
  const { tensors, metadata } = readTensors(path);
  const bad = (why: string): TreewardError =>
    new TreewardError('LEARNER_E_BATCH', `${path} is not a batch: ${why}`, { data: { file: path } });
  const get = <A extends TensorData>(name: string, Kind: new () => A, length?: number): A => {
    const data = tensors.get(name)?.data;
    if (!(data instanceof Kind)) throw bad(`${name} is missing or not a ${Kind.name}`);
    if (length !== undefined && data.length !== length) {
      throw bad(`${name} has ${data.length} entries, expected ${length}`);
    }
    return data;
  };
  const rowStart_B1 = get('rowStart_B1', Int32Array);
  const T = rowStart_B1[rowStart_B1.length - 1] ?? 0;
  if (metadata['bannedIds'] === undefined || metadata['numRollouts'] === undefined) {
    throw bad('its metadata lack bannedIds or numRollouts');
  }
  return {
    rowStart_B1,
    tokens_T: get('tokens_T', Int32Array, T),
    owned_T: get('owned_T', Uint8Array, T),
    rolloutLogprobs_T: get('rolloutLogprobs_T', Float32Array, T),
    advantages_T: get('advantages_T', Float32Array, T),
    temperature_T: get('temperature_T', Float32Array, T),
    rollout_B: get('rollout_B', Int32Array, rowStart_B1.length - 1),
    bannedIds: JSON.parse(metadata['bannedIds']) as number[],
    numRollouts: Number(metadata['numRollouts']),
  };
}

export function writeScores(path: string, scores: Scores): void {
  writeTensors(
    path,
    new Map([
      ['logprobs_T', vector(scores.logprobs_T)],
      ['entropies_T', vector(scores.entropies_T)],
    ]),
  );
}

export function readScores(path: string): Scores {
  const { tensors } = readTensors(path);
  return {
    logprobs_T: tensors.get('logprobs_T')!.data as Float32Array,
    entropies_T: tensors.get('entropies_T')!.data as Float32Array,
  };
}
