import type { RolloutRecord } from '@treeward/telemetry';
import { confidenceOf } from './calibration.js';
import { causalOrders } from './causal-order.js';
import { causalSequence } from './causal-sequence.js';
import { collectCalls, type RecordedCall } from './collect-calls.js';
import { ContextTree, EMPTY_CONTEXT, type Position } from './context-tree.js';
import { EVIDENCE } from './evidence.js';
import { flatten } from './flatten.js';
import { linkCalls } from './link/link-calls.js';
import { epochsOf, runsOf } from './runs-epochs.js';
import type { RolloutTree, TreeCall, TreeEdge, TreeIssue } from './types.js';
import { readSampling, untrainedReason, type CallTokens } from './untrained.js';
import { verdictOf } from './verdict.js';

/** The part of a record that recovery reads. */
export type RecordInput = Pick<RolloutRecord, 'events' | 'tokens' | 'logprobs' | 'issues'>;

/** Claims that the contents speak against. */
const CONTRADICTIONS = {
  'header-against': 'TREE_HEADER',
  'graft-elsewhere': 'TREE_GRAFT',
  'tokens-elsewhere': 'TREE_TOKENS',
} as const;

/** A call with its place in the growing context tree; -1 where it has none. */
interface PlacedCall {
  entry: RecordedCall;
  tokens: CallTokens;
  promptNode: number;
  actionNode: number;
}

/**
 * From a record to what the rollout really was. Pure: the same events give the same tree, in whatever order they stand
 * and however often they were written. Never throws for what a record may contain: what cannot be trusted becomes an
 * issue and leaves its own call untrained.
 */
export function recoverTree(record: RecordInput): RolloutTree {
  const collected = collectCalls(record.events);
  const issues: TreeIssue[] = [...record.issues.map(fromRecordIssue), ...collected.issues];
  const tree = new ContextTree();
  const placed = new Map<number, PlacedCall>();
  for (const entry of collected.parentsFirst) {
    placed.set(entry.call, placeCall(entry, record, tree, placed, issues));
  }
  const arrived = collected.calls.map(({ call }) => placed.get(call)!);
  const linked = linkCalls(
    arrived.map(({ entry, promptNode }) => ({
      entry,
      promptNode,
      byTokens: grownFrom(tree, promptNode),
    })),
    record.events,
  );
  const edges = linked.edges.map(({ from, to, type, evidence }): TreeEdge => ({
    from,
    to,
    type,
    confidence: confidenceOf(type, evidence),
    evidence,
  }));
  for (const { from, to, type, evidence } of edges) {
    const against = evidence.filter((code) => code in CONTRADICTIONS) as (keyof typeof CONTRADICTIONS)[];
    for (const code of against) {
      issues.push({
        severity: 'warn',
        code: CONTRADICTIONS[code],
        call: to,
        message: `call ${to} is taken as ${type} of call ${from}, but ${EVIDENCE[code]}`,
      });
    }
  }
  const { order, cyclic } = causalSequence(
    arrived.map((call, at) => ({
      call: call.entry.call,
      startTime: call.entry.startTime,
      placed: call,
      role: linked.roles[at]!,
      agent: linked.agents[at]!,
    })),
    edges,
  );
  for (const call of cyclic) {
    issues.push({
      severity: 'fatal',
      code: 'TREE_CAUSAL_CYCLE',
      call,
      message: `call ${call} is its own cause along the edges that were found`,
    });
  }
  const flat = flatten(
    tree,
    order.flatMap(({ placed: { promptNode, actionNode } }) =>
      [promptNode, actionNode].filter((node) => node !== -1),
    ),
  );
  const { epochs, epochOf } = epochsOf(order, edges);
  const calls = order.map(({ placed: call, role, agent }) => ({
    ...describeCall(call, flat.place),
    role,
    agent,
    epoch: epochOf.get(call.entry.call)!,
  }));
  if (!collected.rollout) {
    issues.push({ severity: 'fatal', code: 'TREE_NO_START', message: 'the record has no rollout.start' });
  }
  if (arrived.some(({ entry }) => readSampling(entry.sampled?.sampling).truncated)) {
    issues.push({
      severity: 'warn',
      code: 'TREE_TRUNCATED_SAMPLING',
      message: 'top-p or top-k cut what was sampled from: recorded logprobs and the learner’s differ by that',
    });
  }
  const reward = collected.verifier?.reward ?? null;
  const status = collected.end?.status ?? 'open';
  return {
    rolloutId: collected.rollout?.rolloutId ?? '',
    labels: collected.rollout?.labels ?? {},
    tokens_T: flat.tokens_T,
    logprobs_T: flat.logprobs_T,
    nodes: flat.nodes,
    calls,
    edges,
    runs: runsOf(calls, edges),
    epochs,
    causal: causalOrders(calls, edges),
    issues: settled(issues),
    verdict: verdictOf({
      hasStart: collected.rollout !== null,
      calls,
      reward,
      verifierError: collected.verifier?.error ?? null,
      status,
    }),
    reward,
    status,
  };
}

function placeCall(
  entry: RecordedCall,
  record: RecordInput,
  tree: ContextTree,
  placed: ReadonlyMap<number, PlacedCall>,
  issues: TreeIssue[],
): PlacedCall {
  const { call, sampled, prompt: event } = entry;
  const ids = sampled ? record.tokens(sampled.tokens) : null;
  const logprobs = sampled ? record.logprobs(sampled.logprobs) : null;
  const tokens: CallTokens = { prompt: 'missing', ids, logprobs };
  const result: PlacedCall = { entry, tokens, promptNode: -1, actionNode: -1 };
  if (!event) return result;

  const appended = record.tokens(event.prompt.appended);
  const from = appended ? startOf(entry, appended, tree, placed) : null;
  if (!appended || !from) {
    tokens.prompt = 'unknown';
    issues.push({
      severity: 'fatal',
      code: 'TREE_PROMPT_UNKNOWN',
      call,
      message: appended
        ? `the prompt of call ${call} keeps ${event.prompt.kept} ids of call ${event.prompt.parent}, which are not known`
        : `the prompt of call ${call} lies outside tokens.bin`,
    });
    return result;
  }
  result.promptNode = tree.insert(from.position, from.rest, (candidates) =>
    chooseAction(candidates, entry, tree, placed),
  );
  const { hash, length } = event.prompt;
  tokens.prompt = tree.hash(result.promptNode) === hash ? 'verified' : 'mismatch';
  if (tokens.prompt === 'mismatch') {
    issues.push({
      severity: 'fatal',
      code: 'TREE_HASH_MISMATCH',
      call,
      message: `the prompt of call ${call} (${length} ids, hash ${hash}) was put together as ${tree.depthAfter(result.promptNode)} ids with hash ${tree.hash(result.promptNode)}`,
    });
  }
  if (ids && ids.length > 0) {
    const usable = logprobs?.length === ids.length ? logprobs : null;
    result.actionNode = tree.addAction(result.promptNode, call, ids, usable);
  }
  return result;
}

/** Where the kept part of a prompt ends in the tree, and what is still to be walked; null when that is not known. */
function startOf(
  entry: RecordedCall,
  appended: Int32Array,
  tree: ContextTree,
  placed: ReadonlyMap<number, PlacedCall>,
): { position: Position; rest: Int32Array } | null {
  const { parent, kept } = entry.prompt!.prompt;
  if (parent === null) {
    if (kept > 0) return null;
    const witness = replyByMessages(entry, placed);
    const action = witness?.actionNode ?? -1;
    if (action !== -1 && tree.isPrefix(action, appended)) {
      const depth = tree.depthAfter(action);
      return { position: tree.locate(action, depth), rest: appended.subarray(depth) };
    }
    return { position: tree.locate(EMPTY_CONTEXT, 0), rest: appended };
  }
  const source = placed.get(parent);
  if (!source || source.promptNode === -1) return null;
  const end = source.actionNode === -1 ? source.promptNode : source.actionNode;
  if (kept > tree.depthAfter(end)) return null;
  let node = end;
  if (source.actionNode !== -1 && kept === tree.depthAfter(end)) {
    // The graft names one of possibly several equal replies. That claim is weighed like any other witness.
    const twins = tree.twins(source.actionNode);
    if (twins.length > 1) node = chooseAction(twins, entry, tree, placed) ?? source.actionNode;
  }
  return { position: tree.locate(node, kept), rest: appended };
}

/** The call whose whole reply the recorded messages keep. */
function replyByMessages(entry: RecordedCall, placed: ReadonlyMap<number, PlacedCall>): PlacedCall | null {
  const messages = entry.start?.messages;
  if (!messages || messages.parent === null) return null;
  const source = placed.get(messages.parent);
  if (!source?.entry.start) return null;
  const { kept, appended } = source.entry.start.messages;
  return messages.kept > kept + appended.length ? source : null;
}

/**
 * Several earlier replies stand where this prompt goes on with their tokens. A reply that never arrived cannot have
 * been continued; then what the messages say, then what the graft says, then the longest, then one that was continued
 * before, then the latest (a harness takes the attempt after which it stopped retrying).
 */
function chooseAction(
  candidates: readonly number[],
  entry: RecordedCall,
  tree: ContextTree,
  placed: ReadonlyMap<number, PlacedCall>,
): number | null {
  const byMessages = replyByMessages(entry, placed)?.entry.call;
  const graft = entry.prompt?.graft.reason === 'reply' ? entry.prompt.prompt.parent : null;
  let best: number | null = null;
  let bestRank: number[] = [];
  for (const node of candidates) {
    const { entry: source } = placed.get(tree.call[node]!)!;
    const claimed = source.call === byMessages || source.call === graft;
    if (!claimed && (source.sampled?.time ?? Infinity) > entry.startTime) continue;
    const rank = [
      source.end?.delivery === 'none' ? 0 : 1,
      source.call === byMessages ? 1 : 0,
      source.call === graft ? 1 : 0,
      tree.ids(node).length,
      tree.isExtended(node) ? 1 : 0,
      source.startTime,
      source.call,
    ];
    if (best === null || compare(rank, bestRank) > 0) {
      best = node;
      bestRank = rank;
    }
  }
  return best;
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at === -1 ? 0 : a[at]! - b[at]!;
}

/** The call whose reply is the last on the path of this prompt. */
function grownFrom(tree: ContextTree, promptNode: number): number | null {
  const action = promptNode === -1 ? -1 : tree.lastAction[promptNode]!;
  return action === -1 ? null : tree.call[action]!;
}

function describeCall(
  placed: PlacedCall,
  place: (node: number) => number,
): Omit<TreeCall, 'role' | 'agent' | 'epoch'> {
  const { entry, tokens, promptNode, actionNode } = placed;
  const { sampled, end } = entry;
  const { temperature, bannedIds } = readSampling(sampled?.sampling);
  return {
    call: entry.call,
    promptNode: promptNode === -1 ? -1 : place(promptNode),
    actionNode: actionNode === -1 ? -1 : place(actionNode),
    delivery: end?.delivery ?? 'none',
    policyVersion: sampled?.policy.version ?? null,
    policyId: sampled?.policy.id ?? null,
    temperature,
    bannedIds,
    startTime: entry.startTime,
    finishTime: entry.finishTime,
    malformed: sampled?.reply.malformed !== undefined,
    untrained: untrainedReason(entry, tokens),
  };
}

function fromRecordIssue(issue: RecordInput['issues'][number]): TreeIssue {
  const { severity, code, call, message } = issue;
  return { severity, code, ...(call === undefined ? {} : { call }), message };
}

/** Each once, by call: an issue does not depend on where in the file it was met, or how often. */
function settled(issues: readonly TreeIssue[]): TreeIssue[] {
  const unique = new Map(issues.map((issue) => [JSON.stringify(issue), issue]));
  return [...unique.entries()]
    .sort(([a, x], [b, y]) => (x.call ?? -1) - (y.call ?? -1) || (a < b ? -1 : 1))
    .map(([, issue]) => issue);
}
