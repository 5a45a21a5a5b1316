import type { Evidence } from '../evidence.js';
import type { MessageNode, MessageTree } from '../message-tree.js';
import { AnchorIndex } from './anchor-index.js';
import type { LinkCall, LinkEdge } from './link-call.js';
import { wordsOf } from './texts.js';
import type { Threads } from './threads.js';

/** Agents still at work that each call of their parent is compared with, the latest. */
const OPEN = 64;
/** Last replies of an agent that are compared. */
const LAST_REPLIES = 4;
/** Share of a result that must be left of it. */
const PART = 0.25;
/** Words that say nothing, and what harnesses write where they cut. */
const FEW_WORDS = 4;
const CUT = /truncat|omitted|elided|cut off/i;
/** Letters of a cut result that must stand there. */
const CUT_LETTERS = 16;

/**
 * Third pass: where the last reply of an agent enters the work of its parent. The text decides; where a result was cut to
 * nothing the place of the tool result does, if no later text contradicts it.
 */
export function findReturns(
  calls: readonly LinkCall[],
  tree: MessageTree,
  threads: Threads,
  beside: ReadonlySet<number>,
): LinkEdge[] {
  const edges: LinkEdge[] = [];
  const open = new Map<number, number[]>();
  const byPlace = new Map<number, LinkEdge>();
  /** By the reply that was gone on from: agents that came back to a call behind it. */
  const back = new Map<number, number[]>();
  for (const call of calls) {
    if (call.thread === -1) continue;
    const thread = threads.all[call.thread]!;
    if (thread.calls[0] === call.at && thread.parent !== null) {
      const list = open.get(thread.parent) ?? [];
      list.push(thread.id);
      open.set(thread.parent, list);
    }
    if (call.node === -1 || call.attachment.kind === 'repeats') continue;
    // A branch beside another one holds what came back to that one.
    const of = call.attachment.kind === 'extends' ? call.attachment.of : -1;
    const shared = beside.has(call.at) ? (back.get(of) ?? []) : [];
    const waiting = [...(open.get(call.thread) ?? []), ...shared];
    if (waiting.length === 0) continue;
    const from = of !== -1 ? call.turn : call.attach;
    const fresh = tree.between(from, call.node).filter(({ role }) => role !== 'assistant');
    if (fresh.length === 0) continue;
    const text = fresh.map((message) => message.text).join('\n');
    const words = ` ${wordsOf(text).join(' ')} `;
    const done = new Set<number>();
    for (const child of waiting.slice(-OPEN)) {
      const results = lastReplies(calls, threads.all[child]!.calls, call);
      if (results.length === 0) continue;
      let last = results[0]!;
      let evidence: Evidence | null = null;
      for (const result of results) {
        const found = resultIn(result.replyText, text, words);
        if (!found || evidence === 'result-text') continue;
        if (evidence === null || found === 'result-text') [last, evidence] = [result, found];
      }
      const place = stands(calls, tree, threads, child, call);
      if (evidence) {
        done.add(child);
        const why: Evidence[] = place ? [evidence, 'result-place'] : [evidence];
        edges.push({ from: last.at, to: call.at, type: 'return', evidence: why });
        byPlace.delete(child);
      } else if (place === 'empty' && last.at === threads.all[child]!.calls.at(-1) && !byPlace.has(child)) {
        byPlace.set(child, { from: last.at, to: call.at, type: 'return', evidence: ['result-place'] });
      }
    }
    if (done.size === 0) continue;
    const still = (open.get(call.thread) ?? []).filter((child) => !done.has(child));
    open.set(call.thread, still);
    if (of !== -1) back.set(of, [...(back.get(of) ?? []), ...done]);
  }
  return [...edges, ...byPlace.values()];
}

/**
 * Calls that may have given the agent's result when the parent's call arrived: answered, without asking for tools, and
 * nothing went on from them. The latest first; of two that were asked side by side the harness may take either.
 */
function lastReplies(calls: readonly LinkCall[], thread: readonly number[], parent: LinkCall): LinkCall[] {
  let last = thread.length - 1;
  while (last >= 0 && thread[last]! > parent.at) last--;
  const out: LinkCall[] = [];
  for (; last >= 0 && out.length < LAST_REPLIES; last--) {
    const call = calls[thread[last]!]!;
    if (!call.sampled || call.uses.length > 0) break;
    out.push(call);
  }
  return out;
}

function resultIn(reply: string, text: string, words: string): Evidence | null {
  const wanted = wordsOf(reply).join(' ');
  if (wanted === '') return null;
  if (words.includes(` ${wanted} `)) return 'result-text';
  if (wanted.length >= CUT_LETTERS && words.includes(` ${wanted.slice(0, CUT_LETTERS)}`))
    return 'result-part';
  const index = new AnchorIndex();
  index.add(reply, 0);
  return (index.find(text)[0]?.coverage ?? 0) >= PART ? 'result-part' : null;
}

/** Is the result of the tool use that started the agent among the new messages, with nothing left in it? */
function stands(
  calls: readonly LinkCall[],
  tree: MessageTree,
  threads: Threads,
  child: number,
  call: LinkCall,
): 'filled' | 'empty' | null {
  const { spawn } = threads.all[child]!;
  if (!spawn || call.attachment.kind !== 'extends' || call.attachment.of !== spawn.of) return null;
  const results = tree.between(call.turn, call.node).filter(({ role }: MessageNode) => role === 'tool');
  const result = results[spawn.use];
  if (!result || calls[spawn.of]!.uses.length <= spawn.use) return null;
  return wordsOf(result.text).length < FEW_WORDS || CUT.test(result.text) ? 'empty' : 'filled';
}
