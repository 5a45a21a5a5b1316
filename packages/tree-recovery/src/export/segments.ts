import { callsAbove } from '../tree-paths.js';
import type { RolloutTree, TreeCall } from '../types.js';

/** One line of the JSONL of trained segments: one sampled reply and where its context is. */
export interface Segment {
  rolloutId: string;
  call: number;
  role: TreeCall['role'];
  agent: number;
  policyId: string | null;
  policyVersion: number | null;
  temperature: number;
  reward: number | null;
  /** Calls whose sampled tokens stand in the context, oldest first. */
  context: number[];
  /** Observed tokens of the context that no segment of `context` has shown: behind the last of them. */
  observed: number[];
  tokens: number[];
  logprobs: number[];
}

/** Every call that trains, each sampled token once, in causal order. */
export function trainedSegments(tree: RolloutTree): Segment[] {
  const { start_N, end_N, parent_N, kind_N } = tree.nodes;
  const ownerOf = new Map(tree.calls.map((call) => [call.actionNode, call]));
  return tree.calls.flatMap((call): Segment[] => {
    if (call.untrained !== null || call.actionNode === -1 || tree.verdict.kind === 'rejected') return [];
    const observed: number[][] = [];
    for (let n = call.promptNode; n !== -1 && kind_N[n] === 0; n = parent_N[n]!) {
      observed.push([...tree.tokens_T.subarray(start_N[n], end_N[n])]);
    }
    const [start, end] = [start_N[call.actionNode], end_N[call.actionNode]];
    return [
      {
        rolloutId: tree.rolloutId,
        call: call.call,
        role: call.role,
        agent: call.agent,
        policyId: call.policyId,
        policyVersion: call.policyVersion,
        temperature: call.temperature,
        reward: tree.reward,
        context: callsAbove(tree, call, ownerOf).map((above) => above.call),
        observed: observed.reverse().flat(),
        tokens: [...tree.tokens_T.subarray(start, end)],
        logprobs: [...tree.logprobs_T.subarray(start, end)],
      },
    ];
  });
}
