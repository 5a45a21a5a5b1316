import { toolManifestHash } from '@treeward/messages';
import type { RecordEvent } from '@treeward/telemetry';
import type { RecordedCall } from '../collect-calls.js';
import { MessageTree, type MessageNode } from '../message-tree.js';
import type { CallRole } from '../types.js';
import { Attacher } from './attach.js';
import { ForkResolver } from './forks.js';
import { type LinkCall, type LinkEdge } from './link-call.js';
import { findReturns } from './returns.js';
import type { Known } from './scene.js';
import { readParts } from './texts.js';
import type { Threads } from './threads.js';
import { asksForSummary } from './turns.js';
import { Witnesses } from './witnesses.js';

/** What the context tree says of a call. */
export interface CallToLink {
  entry: RecordedCall;
  /** Equal numbers: the same prompt tokens; -1 unknown or empty. */
  promptNode: number;
  /** Number of the call whose prompt and reply this prompt repeats token by token. */
  byTokens: number | null;
}

export interface LinkedCalls {
  /** `from` and `to` are call numbers. */
  edges: LinkEdge[];
  /** In the order of the calls given. */
  roles: CallRole[];
  /** 0 main, others in the order in which they first called. */
  agents: number[];
}

/** Joins the witnesses. Calls in the order in which they arrived; of `events` transcripts and commands are read. */
export function linkCalls(given: readonly CallToLink[], events: readonly RecordEvent[]): LinkedCalls {
  const witnesses = new Witnesses(events);
  const positionOf = new Map(given.map(({ entry }, at) => [entry.call, at]));
  const toolless = toollessManifests(given);
  const nothing = { isVolatile: null, summaries: new Set<number>(), spawning: null, witnesses };
  let pass = attachAll(given, positionOf, toolless, nothing);
  const { lostLast, lateSummaries, spawning } = pass.attacher;
  // Some things show only later; then all is judged again with that known.
  if (lostLast.size > 0 || lateSummaries.size > 0 || (spawning.missed && spawning.tools.size > 0)) {
    const hindsight = { isVolatile: volatileLast(pass), summaries: lateSummaries, spawning, witnesses };
    pass = attachAll(given, positionOf, toolless, hindsight);
  }
  const { calls, tree, attacher } = pass;
  const { threads } = attacher;
  assignRoles(calls, threads);
  const resolver = new ForkResolver(calls);
  const forks = resolver.edges();
  const beside = new Set(forks.filter(({ type }) => type === 'parallel').map(({ to }) => to));
  const edges = [
    ...forks,
    ...otherEdges(calls),
    ...parallelAgents(calls, resolver),
    ...findReturns(calls, tree, threads, beside, witnesses),
  ];
  edges.sort((a, b) => a.to - b.to || a.from - b.from);
  const agents = agentNumbers(calls, threads);
  const numberOf = (at: number): number => given[at]!.entry.call;
  return {
    edges: edges.map((edge) => ({ ...edge, from: numberOf(edge.from), to: numberOf(edge.to) })),
    roles: calls.map(({ role }) => role),
    agents,
  };
}

/** What only a first pass can tell. `isVolatile` null: this is the first. */
interface Hindsight extends Known {
  isVolatile: IsVolatile | null;
}

interface Pass {
  calls: LinkCall[];
  tree: MessageTree;
  attacher: Attacher;
}

function attachAll(
  given: readonly CallToLink[],
  positionOf: ReadonlyMap<number, number>,
  toolless: ReadonlyMap<string, boolean>,
  { isVolatile, ...known }: Hindsight,
): Pass {
  const tree = new MessageTree();
  const calls: LinkCall[] = [];
  const attacher = new Attacher(
    calls,
    positionOf,
    tree,
    [...toolless.values()].includes(false),
    isVolatile === null,
    known,
  );
  given.forEach((one, at) => {
    const call = prepare(one, at, positionOf, tree, toolless, (last) => isVolatile?.(at, last) ?? false);
    calls.push(call);
    attacher.attach(call);
    // Only now: nothing can go on from a reply before its call has started.
    const { sampled, end } = one.entry;
    if (sampled) tree.addReply(at, sampled.reply.parts);
    else if (end?.delivery !== 'none') tree.addReply(at, null);
  });
  return { calls, tree, attacher };
}

type IsVolatile = (at: number, last: MessageNode) => boolean;

/** Letters at the beginning of a volatile message by which others of its kind are known. */
const KIND = 16;
/** Share of the requests that went on and lost their last message. */
const SOME = 0.5;
const MOSTLY = 0.8;

/**
 * Some harnesses end every request in a message that is gone from the next history. Where that is seen, such messages
 * are taken out of the conversation, or no turn would ever meet its repetition.
 */
function volatileLast({ calls, tree, attacher: { lostLast } }: Pass): IsVolatile {
  const went = new Set(
    calls.flatMap(({ attachment }) => (attachment.kind === 'extends' ? [attachment.of] : [])),
  );
  const share = lostLast.size / went.size;
  // What only some requests lose was lost in a rendering of its own, not because it never counted.
  if (lostLast.size === 0 || share < SOME) return () => false;
  const kinds = new Set([...lostLast].map((at) => tree.content(calls[at]!.node)!.text.slice(0, KIND)));
  return (at, { text }) =>
    !asksForSummary(text) && (lostLast.has(at) || share >= MOSTLY || kinds.has(text.slice(0, KIND)));
}

const NO_TOOLS = toolManifestHash([]);

/** By hash of the manifest: does it hold no tool? Other than for none only where the record has the manifest itself. */
function toollessManifests(given: readonly CallToLink[]): Map<string, boolean> {
  const out = new Map([[NO_TOOLS, true]]);
  for (const { entry } of given) {
    const tools = entry.start?.tools;
    if (tools && Array.isArray(tools.specs)) out.set(tools.hash, tools.specs.length === 0);
  }
  return out;
}

function prepare(
  { entry, promptNode, byTokens }: CallToLink,
  at: number,
  positionOf: ReadonlyMap<number, number>,
  tree: MessageTree,
  toolless: ReadonlyMap<string, boolean>,
  isVolatile: (last: MessageNode) => boolean,
): LinkCall {
  const { start, sampled, end } = entry;
  const place = start
    ? tree.add(
        at,
        start.messages.parent === null ? null : (positionOf.get(start.messages.parent) ?? null),
        start.messages,
        isVolatile,
      )
    : null;
  const reply = sampled ? readParts(sampled.reply.parts) : { text: '', uses: [] };
  return {
    at,
    entry,
    start: entry.startTime,
    finish: entry.finishTime,
    promptNode,
    byTokens: byTokens === null ? null : (positionOf.get(byTokens) ?? null),
    node: place?.node ?? -1,
    attach: place?.attach ?? -1,
    turn: place ? tree.lastReply(place.node) : 0,
    fragment: place?.fragment ?? false,
    systemText: place?.systemText ?? '',
    identity: start?.identity ?? {},
    tools: start?.tools.hash ?? null,
    toolless: start ? (toolless.get(start.tools.hash) ?? null) : null,
    sampled: sampled !== null,
    replyLost: sampled === null && (end === null || (end.status < 400 && end.delivery !== 'none')),
    replyText: reply.text,
    uses: reply.uses,
    delivered: end === null || end.delivery === 'complete',
    malformed: sampled?.reply.malformed !== undefined,
    attachment: { kind: 'root' },
    role: 'main',
    thread: -1,
  };
}

/** Compaction before agent: who wrote a summary did so for the agent whose history it was. */
function assignRoles(calls: readonly LinkCall[], threads: Threads): void {
  const summaries = new Set<number>();
  for (const { attachment } of calls) if (attachment.kind === 'compacted') summaries.add(attachment.of);
  for (const call of calls) {
    const { attachment, identity } = call;
    const wrote =
      summaries.has(call.at) ||
      attachment.kind === 'summarises' ||
      (attachment.kind === 'repeats' && calls[attachment.of]!.role === 'compaction') ||
      (identity.requestClass === 'compaction' && attachment.kind !== 'compacted');
    call.role =
      call.thread === -1
        ? 'side'
        : wrote
          ? 'compaction'
          : threads.all[call.thread]!.subagent
            ? 'subagent'
            : 'main';
  }
  // A summary may have been asked for again: the attempts before the one that was used wrote it as well.
  for (const call of [...calls].reverse()) {
    if (call.role === 'compaction' && call.attachment.kind === 'repeats') {
      calls[call.attachment.of]!.role = 'compaction';
    }
  }
}

function otherEdges(calls: readonly LinkCall[]): LinkEdge[] {
  return calls.flatMap(({ at, attachment }): LinkEdge[] => {
    switch (attachment.kind) {
      case 'compacted':
      case 'summarises':
        return [{ from: attachment.of, to: at, type: 'compaction', evidence: attachment.evidence }];
      case 'rewritten':
        return [{ from: attachment.of, to: at, type: 'rewrite', evidence: attachment.evidence }];
      case 'spawned':
        return [{ from: attachment.of, to: at, type: 'spawn', evidence: attachment.evidence }];
      default:
        return [];
    }
  });
}

/** Agents that one reply started and whose first turns overlap: a star around the first of them. */
function parallelAgents(calls: readonly LinkCall[], resolver: ForkResolver): LinkEdge[] {
  const first = new Map<number, LinkCall>();
  const edges: LinkEdge[] = [];
  for (const call of calls) {
    if (call.attachment.kind !== 'spawned') continue;
    const sibling = first.get(call.attachment.of);
    if (!sibling) first.set(call.attachment.of, call);
    else if (resolver.turnsOverlap(sibling.at, call.at)) {
      edges.push({ from: sibling.at, to: call.at, type: 'parallel', evidence: ['same-spawn', 'overlap'] });
    }
  }
  return edges;
}

function agentNumbers(calls: readonly LinkCall[], threads: Threads): number[] {
  const main = threads.all.find(({ subagent }) => !subagent)?.id ?? 0;
  const numbers = new Map<number, number>([
    [-1, 0],
    [main, 0],
  ]);
  let next = 1;
  return calls.map(({ thread }) => {
    let number = numbers.get(thread);
    if (number === undefined) numbers.set(thread, (number = next++));
    return number;
  });
}
