import type { RecordedCall } from './collect-calls.js';
import type { EdgeType, TreeEdge } from './types.js';

/**
 * Confidence by what the evidence says. Fixed by judgement, not yet calibrated against ground truth. It only ever
 * changes credit: no token is dropped for a low one.
 */
const CONFIDENCE = {
  continueBoth: 0.99,
  continueMessages: 0.8,
  continueTokens: 0.6,
  retryUndelivered: 0.99,
  retryMalformed: 0.95,
  retryUnextended: 0.85,
  ambiguousOverlap: 0.5,
  ambiguousExtended: 0.5,
} as const;

/** Each doubt multiplies the confidence. */
const DOUBT = { graftElsewhere: 0.9, undelivered: 0.6, witnessesDisagree: 0.7, oneWitness: 0.8 } as const;

/** What the two trees say about one call. `-1` and `null` where a witness is silent. */
export interface LinkedCall {
  entry: RecordedCall;
  /** Equal numbers: the same prompt tokens, the same messages. */
  promptNode: number;
  request: number | null;
  /** The call whose prompt and reply this prompt repeats token by token. */
  byTokens: number | null;
  /** The calls whose messages and reply this request repeats; several when those were equal. */
  byMessages: readonly number[];
}

/** One edge into each call that something led to. `calls` in the order of their start. */
export function linkCalls(calls: readonly LinkedCall[]): TreeEdge[] {
  const byCall = new Map(calls.map((linked) => [linked.entry.call, linked]));
  const parents = calls.map((linked) => continueParent(linked, byCall));
  const extended = new Set<number>();
  for (const { tokens, messages } of parents) {
    if (tokens !== null) extended.add(tokens);
    if (messages !== null) extended.add(messages);
  }
  const lastWithPrompt = new Map<number, LinkedCall>();
  const lastWithRequest = new Map<number, LinkedCall>();
  const edges: TreeEdge[] = [];
  calls.forEach((linked, i) => {
    const sameTokens = linked.promptNode === -1 ? undefined : lastWithPrompt.get(linked.promptNode);
    const sameMessages = linked.request === null ? undefined : lastWithRequest.get(linked.request);
    const earlier = later(sameTokens, sameMessages);
    const edge = earlier
      ? repeatEdge(earlier, linked, earlier === sameTokens, earlier === sameMessages, extended)
      : continueEdge(linked, parents[i]!, byCall);
    if (edge) edges.push(edge);
    if (linked.promptNode !== -1) lastWithPrompt.set(linked.promptNode, linked);
    if (linked.request !== null) lastWithRequest.set(linked.request, linked);
  });
  return edges;
}

function later(a: LinkedCall | undefined, b: LinkedCall | undefined): LinkedCall | undefined {
  if (!a || !b) return a ?? b;
  return a.entry.startTime >= b.entry.startTime ? a : b;
}

interface Parents {
  tokens: number | null;
  messages: number | null;
}

function continueParent(linked: LinkedCall, byCall: ReadonlyMap<number, LinkedCall>): Parents {
  const { byTokens, byMessages } = linked;
  if (byTokens !== null && byMessages.includes(byTokens)) return { tokens: byTokens, messages: byTokens };
  // Equal replies to equal messages: one that arrived rather than one that did not, then the latest.
  let best: RecordedCall | null = null;
  for (const call of byMessages) {
    const entry = byCall.get(call)?.entry;
    if (!entry || entry.startTime > linked.entry.startTime) continue;
    const better =
      !best ||
      Number(isDelivered(entry)) - Number(isDelivered(best)) > 0 ||
      (isDelivered(entry) === isDelivered(best) && entry.startTime >= best.startTime);
    if (better) best = entry;
  }
  return { tokens: byTokens, messages: best?.call ?? null };
}

function continueEdge(
  linked: LinkedCall,
  { tokens, messages }: Parents,
  byCall: ReadonlyMap<number, LinkedCall>,
): TreeEdge | null {
  // Messages before tokens: a wrong graft repeats its mistake in the tokens.
  const from = messages ?? tokens;
  if (from === null) return null;
  const evidence: string[] = [];
  let confidence: number;
  if (tokens === messages) {
    confidence = CONFIDENCE.continueBoth;
    evidence.push('messages repeat its history and reply', 'the prompt repeats its tokens');
  } else if (messages !== null) {
    confidence = CONFIDENCE.continueMessages;
    evidence.push('messages repeat its history and reply', 'the prompt does not repeat its sampled tokens');
  } else {
    confidence = CONFIDENCE.continueTokens;
    evidence.push('the prompt repeats its tokens', 'no message-level evidence');
  }
  if (tokens !== null && messages !== null && tokens !== messages) {
    confidence *= DOUBT.witnessesDisagree;
    evidence.push(`tokens point to call ${tokens}`);
  }
  const graft = linked.entry.prompt;
  if (graft?.graft.reason === 'reply') {
    if (graft.prompt.parent === from) evidence.push('the gateway grafted on it');
    else {
      confidence *= DOUBT.graftElsewhere;
      evidence.push(`the gateway grafted on call ${graft.prompt.parent}`);
    }
  }
  const source = byCall.get(from);
  if (source && !isDelivered(source.entry)) {
    confidence *= DOUBT.undelivered;
    evidence.push('its reply was recorded as undelivered');
  }
  return edge(from, linked.entry.call, 'continue', confidence, evidence);
}

/** The same prompt sampled again: the earlier attempt failed, was given up, or ran beside this one. */
function repeatEdge(
  earlier: LinkedCall,
  linked: LinkedCall,
  sameTokens: boolean,
  sameMessages: boolean,
  extended: ReadonlySet<number>,
): TreeEdge {
  const from = earlier.entry.call;
  const to = linked.entry.call;
  const evidence: string[] = [];
  if (sameTokens) evidence.push('same prompt tokens');
  if (sameMessages) evidence.push('same messages');
  const doubt = sameTokens && sameMessages ? 1 : DOUBT.oneWitness;
  if (linked.entry.startTime < earlier.entry.finishTime) {
    evidence.push('the two calls overlap in time');
    return edge(from, to, 'ambiguous', CONFIDENCE.ambiguousOverlap, evidence);
  }
  if (!isDelivered(earlier.entry)) {
    evidence.push(`the earlier reply did not arrive (${earlier.entry.end?.cause ?? 'no call.end'})`);
    return edge(from, to, 'retry', CONFIDENCE.retryUndelivered * doubt, evidence);
  }
  const malformed = earlier.entry.sampled?.reply.malformed;
  if (malformed !== undefined) {
    evidence.push(`the earlier reply was malformed (${malformed})`);
    return edge(from, to, 'retry', CONFIDENCE.retryMalformed * doubt, evidence);
  }
  if (!extended.has(from)) {
    evidence.push('nothing ever extended the earlier reply');
    return edge(from, to, 'retry', CONFIDENCE.retryUnextended * doubt, evidence);
  }
  evidence.push('the earlier reply was extended as well');
  return edge(from, to, 'ambiguous', CONFIDENCE.ambiguousExtended, evidence);
}

function isDelivered(entry: RecordedCall): boolean {
  return entry.end !== null && entry.end.delivery === 'complete';
}

function edge(
  from: number,
  to: number,
  type: EdgeType,
  confidence: number,
  evidence: readonly string[],
): TreeEdge {
  return { from, to, type, confidence, evidence };
}
