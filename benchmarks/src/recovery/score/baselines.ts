import { canonicalKey, type Message } from '@treeward/messages';
import {
  EMPTY_TOKEN_HASH,
  finishTokenHash,
  stepLane0,
  stepLane1,
  type RecordEvent,
} from '@treeward/telemetry';
import type { RecordInput } from '@treeward/tree-recovery';
import { recordedPrompts } from '../record/recorded-prompts.js';

/** For each call the one that led to it, as another method sees it. */
export type Parents = ReadonlyMap<number, number>;

/** The record as one line: every call follows the one that started before it. */
export function linearised(events: readonly RecordEvent[]): Parents {
  const starts = events
    .flatMap((event) => (event.type === 'call.start' ? [event] : []))
    .sort((a, b) => a.time - b.time || a.call - b.call);
  const calls = [...new Set(starts.map(({ call }) => call))];
  return new Map(calls.slice(1).map((call, index) => [call, calls[index]!]));
}

/** A trie of messages: a call hangs below the earlier call whose history and reply are its longest prefix. */
export function messagePrefix(events: readonly RecordEvent[]): Parents {
  const nodes = new Map<string, number>();
  const step = (node: number, key: string): number => {
    const edge = `${node}|${key}`;
    const next = nodes.get(edge) ?? nodes.size + 1;
    nodes.set(edge, next);
    return next;
  };
  /** The nodes on each call's way, its reply included. */
  const paths = new Map<number, number[]>();
  const replies = new Map<number, number>();
  const parents = new Map<number, number>();
  for (const event of events) {
    if (event.type === 'call.start' && !paths.has(event.call)) {
      const { parent, kept, appended } = event.messages;
      const path = parent === null ? [] : (paths.get(parent) ?? []).slice(0, kept);
      for (const message of appended) {
        path.push(step(path.at(-1) ?? 0, canonicalKey(message as unknown as Message)));
      }
      paths.set(event.call, path);
      const from = path.findLast((node) => replies.has(node));
      if (from !== undefined) parents.set(event.call, replies.get(from)!);
    }
    const path = event.type === 'call.sampled' ? paths.get(event.call) : undefined;
    if (event.type === 'call.sampled' && path) {
      const key = canonicalKey({ role: 'assistant', parts: event.reply.parts } as unknown as Message);
      const node = step(path.at(-1) ?? 0, key);
      paths.set(event.call, [...path, node]);
      replies.set(node, event.call);
    }
  }
  return parents;
}

/** A trie of tokens: a call hangs below the earlier call whose prompt and reply are its longest prefix. */
export function tokenPrefix(record: RecordInput): Parents {
  const parents = new Map<number, number>();
  const wholes = new Map<string, number>();
  for (const { call, prompt, sampled } of recordedPrompts(record)) {
    const state = { ...EMPTY_TOKEN_HASH };
    const step = (id: number): void => {
      state.lane0 = stepLane0(state.lane0, id);
      state.lane1 = stepLane1(state.lane1, id);
      state.length++;
    };
    for (const id of prompt) {
      step(id);
      const found = wholes.get(finishTokenHash(state));
      if (found !== undefined) parents.set(call, found);
    }
    if (!sampled) continue;
    for (const id of sampled) step(id);
    wholes.set(finishTokenHash(state), call);
  }
  return parents;
}
