/**
 * What a rollout really was. Flat arrays (structure of arrays): transferable between threads without copying and
 * readable by kernels as they are.
 *
 * Legend: T tokens stored once, N nodes, C calls, E edges.
 */
export type NodeKind = 'observation' | 'action';
export type EdgeType = 'continue' | 'retry' | 'ambiguous';
export type CallRole = 'main' | 'subagent' | 'compaction' | 'side';

export interface TreeNodes {
  /** 0 observation, 1 action. Action nodes are atomic: one per sampled reply, never merged, never split. */
  kind_N: Uint8Array;
  /** Parent before child; -1 at a root. */
  parent_N: Int32Array;
  /** Half-open span in `tokens_T`. */
  start_N: Int32Array;
  end_N: Int32Array;
  /** Tokens before the node on its path. */
  depth_N: Int32Array;
}

export interface TreeCall {
  call: number;
  promptNode: number;
  /** -1 when nothing was sampled. */
  actionNode: number;
  role: CallRole;
  delivery: 'complete' | 'partial' | 'none';
  policyVersion: number | null;
  policyId: string | null;
  temperature: number;
  bannedIds: readonly number[];
  startTime: number;
  finishTime: number;
  malformed: boolean;
  /** Null when this call's tokens train; otherwise the reason why not, decided from the call itself. */
  untrained: string | null;
}

export interface TreeEdge {
  from: number;
  to: number;
  type: EdgeType;
  confidence: number;
  evidence: readonly string[];
}

export interface TreeIssue {
  severity: 'fatal' | 'warn' | 'info';
  code: string;
  call?: number;
  message: string;
}

export interface RolloutTree {
  rolloutId: string;
  labels: Readonly<Record<string, string>>;
  tokens_T: Int32Array;
  /** NaN where not sampled. */
  logprobs_T: Float32Array;
  nodes: TreeNodes;
  calls: readonly TreeCall[];
  edges: readonly TreeEdge[];
  issues: readonly TreeIssue[];
  verdict: { kind: 'trainable' | 'partial' | 'rejected'; reason: string | null };
  /** As the record has them; null when there is none (an infrastructure failure is not a reward of 0). */
  reward: number | null;
  status: 'completed' | 'failed' | 'cancelled' | 'open';
}
