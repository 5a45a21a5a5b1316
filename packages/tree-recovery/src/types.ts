/**
 * What a rollout really was. Flat arrays (structure of arrays): transferable between threads without copying and
 * readable by kernels as they are.
 *
 * Legend: T tokens stored once, N nodes, C calls, E edges.
 */
export type NodeKind = 'observation' | 'action';
/** What led from one call to another (recovery.md §3). `parallel` links siblings and is no cause. */
export type EdgeType =
  | 'continue'
  | 'retry'
  | 'rollback'
  | 'parallel'
  | 'compaction'
  | 'rewrite'
  | 'spawn'
  | 'return'
  | 'ambiguous';
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
  /** Which agent called: 0 is the main one, others in the order in which they appear. */
  agent: number;
  /** Index into `epochs`: the stretch between compactions of one agent that the call lies in. */
  epoch: number;
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

/** A maximal chain of `continue` edges. */
export interface TreeRun {
  calls: readonly number[];
}

/** A stretch between compactions of one agent. */
export interface TreeEpoch {
  agent: number;
  calls: readonly number[];
}

/**
 * Successors of each call in causal order as CSR over positions in `calls` (not call numbers): those of position i are
 * `successor_L[offset_C1[i] .. offset_C1[i+1])` with weights that add to 1. A call without successors is a sink: it
 * receives the rollout's reward.
 */
export interface CausalOrder {
  offset_C1: Int32Array;
  successor_L: Int32Array;
  weight_L: Float32Array;
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
  runs: readonly TreeRun[];
  epochs: readonly TreeEpoch[];
  causal: { chain: CausalOrder; lineage: CausalOrder };
  issues: readonly TreeIssue[];
  verdict: { kind: 'trainable' | 'partial' | 'rejected'; reason: string | null };
  /** As the record has them; null when there is none (an infrastructure failure is not a reward of 0). */
  reward: number | null;
  status: 'completed' | 'failed' | 'cancelled' | 'open';
}
