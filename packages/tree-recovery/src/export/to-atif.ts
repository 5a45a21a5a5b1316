import type { CallSampled, CallStart, Json } from '@treeward/telemetry';
import type { RecordInput } from '../recover.js';
import { pathLength } from '../tree-paths.js';
import type { RolloutTree, TreeCall } from '../types.js';
import { ATIF_VERSION, type AtifDocument, type AtifStep, type AtifToolCall } from './atif-types.js';

/** Edges along which one document goes on. */
const GOES_ON = new Set(['continue', 'retry', 'rollback', 'compaction', 'rewrite']);

interface Export {
  tree: RolloutTree;
  calls: ReadonlyMap<number, TreeCall>;
  starts: ReadonlyMap<number, CallStart>;
  replies: ReadonlyMap<number, CallSampled>;
  before: ReadonlyMap<number, number>;
  spawned: ReadonlyMap<number, number[]>;
  leaves: ReadonlyMap<number, number[]>;
  shown: Set<number>;
}

/**
 * One linear document per branch of a main agent, from its first call to a call that nothing goes on from; agents that
 * a branch started are embedded. A step that an earlier document holds is marked as copied context, so that each sampled
 * reply counts once. Messages come from the record, tokens and structure from the tree; edges, with their confidences,
 * stand in `extra`.
 */
export function treeToAtif(tree: RolloutTree, record: Pick<RecordInput, 'events'>): AtifDocument[] {
  const starts = new Map<number, CallStart>();
  const replies = new Map<number, CallSampled>();
  for (const event of record.events) {
    if (event.type === 'call.start') starts.set(event.call, event);
    if (event.type === 'call.sampled') replies.set(event.call, event);
  }
  const before = new Map<number, number>();
  const spawned = new Map<number, number[]>();
  const goneOn = new Set<number>();
  for (const { from, to, type } of tree.edges) {
    if (GOES_ON.has(type)) {
      before.set(to, from);
      goneOn.add(from);
    }
    if (type === 'spawn') spawned.set(from, [...(spawned.get(from) ?? []), to]);
  }
  const calls = new Map(tree.calls.map((call) => [call.call, call]));
  const leaves = new Map<number, number[]>();
  for (const { call, agent, role } of tree.calls) {
    if (goneOn.has(call) || role === 'side') continue;
    leaves.set(agent, [...(leaves.get(agent) ?? []), call]);
  }
  const context: Export = { tree, calls, starts, replies, before, spawned, leaves, shown: new Set() };
  // Agents that nothing is known to have started stand beside the main one: other sessions, lost beginnings.
  const started = new Set([...spawned.values()].flat().map((call) => calls.get(call)?.agent));
  const roots = [...leaves.keys()].filter((agent) => agent === 0 || !started.has(agent));
  return roots.sort((a, b) => a - b).flatMap((agent) => branchesOf(agent, context));
}

function branchesOf(agent: number, context: Export): AtifDocument[] {
  return (context.leaves.get(agent) ?? []).map((leaf) => branch(leaf, agent, context));
}

function branch(leaf: number, agent: number, context: Export): AtifDocument {
  const { tree } = context;
  const path: number[] = [];
  for (let at: number | undefined = leaf; at !== undefined; at = context.before.get(at)) path.unshift(at);
  const steps: Omit<AtifStep, 'step_id'>[] = [];
  const agents: AtifDocument[] = [];
  for (const call of path) {
    const copied = context.shown.has(call);
    context.shown.add(call);
    steps.push(...stepsOf(call, copied, context));
    if (copied) continue;
    for (const child of context.spawned.get(call) ?? []) {
      agents.push(...branchesOf(context.calls.get(child)!.agent, context));
    }
  }
  const inPath = new Set(path);
  const edges = tree.edges.filter(({ to }) => inPath.has(to));
  return {
    schema_version: ATIF_VERSION,
    session_id: tree.rolloutId,
    trajectory_id: `${tree.rolloutId}/${agent}/${leaf}`,
    agent: {
      name: tree.labels['harness'] ?? 'unknown',
      version: tree.labels['harnessVersion'] ?? 'unknown',
      model_name: context.calls.get(leaf)?.policyId ?? 'unknown',
    },
    steps: steps.map((step, i) => ({ step_id: i + 1, ...step })),
    ...(agents.length > 0 ? { subagent_trajectories: agents } : {}),
    extra: { reward: tree.reward, agent, edges: edges as unknown as Json },
  };
}

/** What was new in a call's request, then its reply. */
function stepsOf(number: number, copied: boolean, context: Export): Omit<AtifStep, 'step_id'>[] {
  const { tree, starts, replies, calls } = context;
  const call = calls.get(number)!;
  const start = starts.get(number);
  const mark = copied ? { is_copied_context: true } : {};
  const timestamp = new Date(call.startTime).toISOString();
  const steps: Omit<AtifStep, 'step_id'>[] = [];
  for (const message of start?.messages.appended ?? []) {
    const step = messageStep(message);
    if (step) steps.push({ timestamp, ...step, ...mark });
  }
  const sampled = replies.get(number);
  if (!sampled) return steps;
  const { nodes } = tree;
  const [from, to] =
    call.actionNode === -1 ? [0, 0] : [nodes.start_N[call.actionNode]!, nodes.end_N[call.actionNode]!];
  const reply = replyStep(sampled.reply.parts);
  steps.push({
    timestamp: new Date(sampled.time).toISOString(),
    ...reply,
    model_name: sampled.policy.id,
    metrics: {
      prompt_tokens: pathLength(tree, call.promptNode),
      completion_tokens: to - from,
      completion_token_ids: [...tree.tokens_T.subarray(from, to)],
      logprobs: [...tree.logprobs_T.subarray(from, to)].map((value) =>
        Number.isFinite(value) ? value : null,
      ),
    },
    ...mark,
    extra: {
      call: number,
      role: call.role,
      agent: call.agent,
      untrained: call.untrained,
      delivery: call.delivery,
    },
  });
  return steps;
}

function messageStep(message: Json): Omit<AtifStep, 'step_id'> | null {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return null;
  const { role, text, callId, parts } = message;
  if (role === 'assistant') return Array.isArray(parts) ? replyStep(parts) : null;
  if (typeof text !== 'string') return null;
  if (role === 'tool') {
    const id = typeof callId === 'string' ? { source_call_id: callId } : {};
    return { source: 'system', message: '', observation: { results: [{ ...id, content: text }] } };
  }
  return { source: role === 'system' ? 'system' : 'user', message: text };
}

function replyStep(parts: readonly Json[]): Omit<AtifStep, 'step_id'> {
  let message = '';
  const tool_calls: AtifToolCall[] = [];
  for (const part of parts) {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) continue;
    if (part['type'] === 'text' && typeof part['text'] === 'string') message += part['text'];
    if (part['type'] === 'tool_call') {
      tool_calls.push({
        tool_call_id: String(part['id'] ?? ''),
        function_name: String(part['name'] ?? ''),
        arguments: part['arguments'] ?? {},
      });
    }
  }
  return { source: 'agent', message, ...(tool_calls.length > 0 ? { tool_calls } : {}) };
}
