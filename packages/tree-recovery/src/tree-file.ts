import { readTensors, TreewardError, writeTensors, type NamedTensor } from '@treeward/base';
import type { CausalOrder, RolloutTree, TreeCall } from './types.js';

const FORMAT = 'treeward-tree/2';

/** Parts that are objects; each is one JSON string in the file's metadata. */
const JSON_PARTS = [
  'labels',
  'calls',
  'edges',
  'runs',
  'epochs',
  'issues',
  'verdict',
  'reward',
  'status',
] as const;
const ORDERS = ['chain', 'lineage'] as const;

/** `tree.bin`: the arrays as safetensors, everything else as JSON in its metadata. Written, then renamed. */
export function writeTree(path: string, tree: RolloutTree): void {
  const tensors = new Map<string, NamedTensor>();
  const add = (name: string, data: NamedTensor['data']): void => {
    tensors.set(name, { shape: [data.length], data });
  };
  add('tokens_T', tree.tokens_T);
  add('logprobs_T', tree.logprobs_T);
  add('kind_N', tree.nodes.kind_N);
  add('parent_N', tree.nodes.parent_N);
  add('start_N', tree.nodes.start_N);
  add('end_N', tree.nodes.end_N);
  add('depth_N', tree.nodes.depth_N);
  for (const name of ORDERS) {
    const { offset_C1, successor_L, weight_L } = tree.causal[name];
    add(`${name}.offset_C1`, offset_C1);
    add(`${name}.successor_L`, successor_L);
    add(`${name}.weight_L`, weight_L);
  }
  const metadata: Record<string, string> = { format: FORMAT, rolloutId: tree.rolloutId };
  for (const part of JSON_PARTS) metadata[part] = JSON.stringify(tree[part]);
  writeTensors(path, tensors, metadata);
}

/** @throws TreewardError FILE_E_MISSING, TENSOR_E_FILE, TREE_E_FILE naming the file */
export function readTree(path: string): RolloutTree {
  const { tensors, metadata } = readTensors(path);
  const bad = (why: string): TreewardError =>
    new TreewardError('TREE_E_FILE', `${path} is not a tree: ${why}`, {
      data: { file: path },
      hints: ['make it again from its record: treeward recover <rollout folder>'],
    });
  if (metadata['format'] !== FORMAT) {
    throw bad(`format ${JSON.stringify(metadata['format'])}, this reader knows ${FORMAT}`);
  }
  const array = <T>(name: string, kind: new (length: number) => T): T => {
    const data = tensors.get(name)?.data;
    if (!(data instanceof kind)) throw bad(`array ${name} is missing or of another type`);
    return data;
  };
  const json = <T>(name: (typeof JSON_PARTS)[number]): T => {
    const text = metadata[name];
    if (text === undefined) throw bad(`${name} is missing`);
    return JSON.parse(text) as T;
  };
  const order = (name: (typeof ORDERS)[number]): CausalOrder => ({
    offset_C1: array(`${name}.offset_C1`, Int32Array),
    successor_L: array(`${name}.successor_L`, Int32Array),
    weight_L: array(`${name}.weight_L`, Float32Array),
  });
  return {
    rolloutId: metadata['rolloutId'] ?? '',
    labels: json('labels'),
    tokens_T: array('tokens_T', Int32Array),
    logprobs_T: array('logprobs_T', Float32Array),
    nodes: {
      kind_N: array('kind_N', Uint8Array),
      parent_N: array('parent_N', Int32Array),
      start_N: array('start_N', Int32Array),
      end_N: array('end_N', Int32Array),
      depth_N: array('depth_N', Int32Array),
    },
    // JSON has no NaN: an unknown temperature is null there.
    calls: json<TreeCall[]>('calls').map((call) => ({
      ...call,
      temperature: (call.temperature as number | null) ?? Number.NaN,
    })),
    edges: json('edges'),
    runs: json('runs'),
    epochs: json('epochs'),
    causal: { chain: order('chain'), lineage: order('lineage') },
    issues: json('issues'),
    verdict: json('verdict'),
    reward: json('reward'),
    status: json('status'),
  };
}
