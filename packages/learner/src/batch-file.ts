import { readTensors, TreewardError, writeTensors, type NamedTensor, type TensorData } from '@treeward/base';
import type { PackedCalls, PackedTrees, Scores } from './types.js';

const vector = (data: TensorData): NamedTensor => ({ shape: [data.length], data });

const CALL_ARRAYS = ['callOffset_R1', 'rollout_R', 'action_C', 'start_C', 'finish_C', 'call_B'] as const;
const ORDERS = ['chain', 'lineage'] as const;
const LINK_ARRAYS = ['successorOffset_C1', 'successor_L'] as const;

/** A batch as a safetensors file: how it travels to the learner's process. */
export function writeBatch(path: string, batch: PackedTrees): void {
  const arrays = new Map<string, NamedTensor>([
    ['rowStart_B1', vector(batch.rowStart_B1)],
    ['tokens_T', vector(batch.tokens_T)],
    ['owned_T', vector(batch.owned_T)],
    ['rolloutLogprobs_T', vector(batch.rolloutLogprobs_T)],
    ['advantages_T', vector(batch.advantages_T)],
    ['temperature_T', vector(batch.temperature_T)],
    ['rollout_B', vector(batch.rollout_B)],
  ]);
  if (batch.parent_B) arrays.set('parent_B', vector(batch.parent_B));
  if (batch.version_B) arrays.set('version_B', vector(batch.version_B));
  const { calls } = batch;
  if (calls) {
    for (const name of CALL_ARRAYS) arrays.set(name, vector(calls[name]));
    arrays.set('reward_R', vector(calls.reward_R));
    for (const order of ORDERS) {
      for (const name of LINK_ARRAYS) arrays.set(`${order}.${name}`, vector(calls[order][name]));
      arrays.set(`${order}.weight_L`, vector(calls[order].weight_L));
    }
  }
  writeTensors(path, arrays, {
    bannedIds: JSON.stringify(batch.bannedIds),
    numRollouts: String(batch.numRollouts),
  });
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
  const B = rowStart_B1.length - 1;
  if (metadata['bannedIds'] === undefined || metadata['numRollouts'] === undefined) {
    throw bad('its metadata lack bannedIds or numRollouts');
  }
  const links = (order: (typeof ORDERS)[number]): PackedCalls['chain'] => ({
    successorOffset_C1: get(`${order}.successorOffset_C1`, Int32Array),
    successor_L: get(`${order}.successor_L`, Int32Array),
    weight_L: get(`${order}.weight_L`, Float32Array),
  });
  return {
    rowStart_B1,
    ...(tensors.has('parent_B') && { parent_B: get('parent_B', Int32Array, B) }),
    tokens_T: get('tokens_T', Int32Array, T),
    owned_T: get('owned_T', Uint8Array, T),
    rolloutLogprobs_T: get('rolloutLogprobs_T', Float32Array, T),
    advantages_T: get('advantages_T', Float32Array, T),
    temperature_T: get('temperature_T', Float32Array, T),
    rollout_B: get('rollout_B', Int32Array, B),
    ...(tensors.has('version_B') && { version_B: get('version_B', Int32Array, B) }),
    bannedIds: JSON.parse(metadata['bannedIds']) as number[],
    numRollouts: Number(metadata['numRollouts']),
    ...(tensors.has('callOffset_R1') && {
      calls: {
        callOffset_R1: get('callOffset_R1', Int32Array),
        rollout_R: get('rollout_R', Int32Array),
        reward_R: get('reward_R', Float32Array),
        action_C: get('action_C', Int32Array),
        start_C: get('start_C', Int32Array),
        finish_C: get('finish_C', Int32Array),
        call_B: get('call_B', Int32Array, B),
        chain: links('chain'),
        lineage: links('lineage'),
      },
    }),
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
