import type { Evidence } from '../evidence.js';
import type { MessageNode, MessageTree } from '../message-tree.js';
import { AnchorIndex } from './anchor-index.js';
import { replyWords, type LinkCall, type LinkEdge } from './link-call.js';
import { wordsOf } from './texts.js';
import type { Threads } from './threads.js';
import type { Witnesses } from './witnesses.js';

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
  witnesses: Witnesses,
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
    const waiting = [...(open.get(call.thread) ?? []).slice(-OPEN), ...shared];
    if (waiting.length === 0) continue;
    const from = of !== -1 ? call.turn : call.attach;
    const fresh = tree.between(from, call.node).filter(({ role }) => role !== 'assistant');
    if (fresh.length === 0) continue;
    const messages = fresh.map(readMessage);
    const places = messages.filter(({ role }) => role === 'tool');
    const done = new Set<number>();
    const found = (child: number, last: LinkCall, ...evidence: Evidence[]): void => {
      done.add(child);
      // The text says it already where it is whole.
      if (!evidence.includes('result-text') && witnesses.heard(last)) evidence.push('transcript');
      edges.push({ from: last.at, to: call.at, type: 'return', evidence });
      byPlace.delete(child);
    };
    const cut: { child: number; results: LinkCall[]; place: MessageText | undefined }[] = [];
    for (const child of waiting) {
      const results = lastReplies(calls, threads.all[child]!.calls, call);
      if (results.length === 0) continue;
      const { spawn } = threads.all[child]!;
      const place = spawn && spawn.of === of ? places[spawn.use] : undefined;
      const whole = results
        .map((result) => ({ result, message: messages.find(holds(result)) }))
        .find(({ message }) => message);
      if (!whole) cut.push({ child, results, place });
      else {
        whole.message!.claimed = true;
        found(child, whole.result, 'result-text', ...(place ? (['result-place'] as const) : []));
      }
    }
    for (const { child, results, place } of cut) {
      const last = results[0]!;
      const here = place && !place.claimed ? results.find((result) => isPart(result, place)) : undefined;
      if (here) found(child, here, 'result-part', 'result-place');
      else {
        const message = messages.find((one) => !one.claimed && one !== place && beginsIn(last, one));
        if (message) found(child, last, 'result-part');
        else if (place && saysNothing(place) && last.at === threads.all[child]!.calls.at(-1)) {
          // Of several last replies the one that the parent's transcript holds: there it may be whole.
          const heard = results.find((result) => witnesses.heard(result));
          byPlace.set(child, byPlace.get(child) ?? placed(heard ?? last, call, heard !== undefined));
        }
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
  // Of two that read the same the one that arrived, then the last to finish.
  return out.sort((a, b) => Number(b.delivered) - Number(a.delivered) || b.finish - a.finish);
}

interface MessageText {
  role: MessageNode['role'];
  text: string;
  /** Its words, with a blank around each, and each of them. */
  words: string;
  vocabulary: ReadonlySet<string>;
  /** It holds the whole result of some agent: what else looks like a part of it stands there by chance. */
  claimed: boolean;
}

function readMessage({ role, text }: MessageNode): MessageText {
  const words = wordsOf(text);
  return { role, text, words: ` ${words.join(' ')} `, vocabulary: new Set(words), claimed: false };
}

function holds(result: LinkCall): (message: MessageText) => boolean {
  const wanted = replyWords(result);
  return (message) =>
    wanted !== '' && mayHold(message, wanted, Infinity) && message.words.includes(` ${wanted} `);
}

function beginsIn(result: LinkCall, message: MessageText): boolean {
  const wanted = replyWords(result);
  return (
    wanted.length >= CUT_LETTERS &&
    mayHold(message, wanted, CUT_LETTERS) &&
    message.words.includes(` ${wanted.slice(0, CUT_LETTERS)}`)
  );
}

/** A look at one word, which spares most searches. `letters`: how many of the text are looked for. */
function mayHold({ vocabulary }: MessageText, wanted: string, letters: number): boolean {
  const blank = wanted.indexOf(' ');
  const end = blank === -1 ? wanted.length : blank;
  return end > letters || vocabulary.has(wanted.slice(0, end));
}

function isPart(result: LinkCall, message: MessageText): boolean {
  if (beginsIn(result, message)) return true;
  const index = new AnchorIndex();
  index.add(result.replyText, 0);
  return (index.find(message.text)[0]?.coverage ?? 0) >= PART;
}

function saysNothing({ text }: MessageText): boolean {
  return wordsOf(text).length < FEW_WORDS || CUT.test(text);
}

function placed(last: LinkCall, call: LinkCall, heard: boolean): LinkEdge {
  const evidence: Evidence[] = heard ? ['result-place', 'transcript'] : ['result-place'];
  return { from: last.at, to: call.at, type: 'return', evidence };
}
