import { applyPreset, presets, type Preset, type RolloutTree, type TreeCall } from '@treeward/tree-recovery';
import { groupAdvantages } from '@treeward/learner';
import type { ToyRun } from './toy.js';

/**
 * What a named method does with a group of rollouts: which calls it trains, its group advantage, its normaliser.
 * `planned`: expected tokens of a rollout, so that both normalisers are of one size.
 */
export function presetEstimator(
  name: keyof typeof presets,
  planned: number,
): (runs: readonly ToyRun[]) => number[][][] {
  const preset = presets[name];
  return (runs) => {
    const { estimator, normaliser } = preset.credit;
    const advantages = groupAdvantages(
      runs.map(({ reward }) => reward),
      runs.map(() => 'group'),
      { estimator },
    );
    return runs.map((run, i) => {
      const trained = trainedCalls(run, preset);
      const tokens = run.calls.reduce((sum, call, c) => sum + (trained[c] ? call.tokens.length : 0), 0);
      const scale = normaliser === 'constant' ? 1 : planned / Math.max(1, tokens);
      return run.calls.map((call, c) => call.tokens.map(() => (trained[c] ? advantages[i]! * scale : 0)));
    });
  };
}

function trainedCalls(run: ToyRun, preset: Preset): boolean[] {
  const tree = applyPreset(toyTree(run), preset);
  return tree.calls.map(({ untrained }) => untrained === null && tree.verdict.kind !== 'rejected');
}

/** A toy's run as recovery would give it: one observation at the root, an action node per call. */
function toyTree(run: ToyRun): RolloutTree {
  const position = new Map(run.calls.map(({ name }, i) => [name, i]));
  const sizes = [1, ...run.calls.map(({ tokens }) => tokens.length)];
  const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((a, b) => a + b, 0));
  const parents = [-1, ...run.calls.map(({ parent }) => (parent === null ? 0 : position.get(parent)! + 1))];
  const depths: number[] = [];
  parents.forEach((parent) => depths.push(parent < 0 ? 0 : depths[parent]! + sizes[parent]!));
  const total = sizes.reduce((a, b) => a + b, 0);
  const none = {
    offset_C1: new Int32Array(run.calls.length + 1),
    successor_L: new Int32Array(),
    weight_L: new Float32Array(),
  };
  return {
    rolloutId: 'toy',
    labels: {},
    tokens_T: new Int32Array(total),
    logprobs_T: Float32Array.from({ length: total }, (_, i) => (i === 0 ? NaN : -1)),
    nodes: {
      kind_N: Uint8Array.from(sizes, (_, i) => (i === 0 ? 0 : 1)),
      parent_N: Int32Array.from(parents),
      start_N: Int32Array.from(starts),
      end_N: Int32Array.from(starts, (start, i) => start + sizes[i]!),
      depth_N: Int32Array.from(depths),
    },
    calls: run.calls.map((_, i) => treeCall(run, i, parents[i + 1]!)),
    edges: run.edges.map(({ from, to, type }) => ({
      from: position.get(from)!,
      to: position.get(to)!,
      type,
      confidence: 1,
      evidence: [],
    })),
    runs: [],
    epochs: [{ agent: 0, calls: run.calls.map((_, i) => i) }],
    causal: { chain: none, lineage: none },
    issues: [],
    verdict: { kind: 'trainable', reason: null },
    reward: run.reward,
    status: 'completed',
  };
}

function treeCall(run: ToyRun, i: number, promptNode: number): TreeCall {
  const { name, start, finish } = run.calls[i]!;
  const child = run.edges.some(({ to, type }) => type === 'spawn' && to === name);
  return {
    call: i,
    promptNode,
    actionNode: i + 1,
    role: child ? 'subagent' : 'main',
    agent: child ? 1 : 0,
    epoch: 0,
    delivery: run.undelivered?.has(name) ? 'none' : 'complete',
    policyVersion: 0,
    policyId: 'toy',
    temperature: 1,
    bannedIds: [],
    startTime: start,
    finishTime: finish,
    malformed: false,
    untrained: null,
  };
}

export const presetNames = Object.keys(presets) as (keyof typeof presets)[];
