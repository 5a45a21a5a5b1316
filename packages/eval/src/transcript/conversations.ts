import type { Message, ReplyPart } from '@treeward/messages';
import { readRecord, type RecordEvent } from '@treeward/telemetry';

type Of<T extends RecordEvent['type']> = Extract<RecordEvent, { type: T }>;

/** A message of a conversation; `call` is the one that sampled it, absent for what the harness said. */
export interface Turn {
  message: Message;
  call: { promptTokens: number; sampledTokens: number; time: number } | null;
}

export interface Episode {
  harness: string;
  /** The main agent's conversations in order of their first call: one, or one per session and one more after each compaction. */
  conversations: Turn[][];
  calls: number;
}

interface Calls {
  starts: Map<number, Of<'call.start'>>;
  prompts: Map<number, number>;
  sampled: Map<number, Of<'call.sampled'>>;
}

/**
 * The main agent's conversations as the gateway recorded them. Each is the history of its last answered call and that call's
 * reply, so retried or abandoned replies are not in it. Side calls (titles, summaries) and sub-agents are left out: by what the
 * harness says of them, else by their having no tools where others have some.
 */
export function readEpisode(directory: string): Episode {
  const { events } = readRecord(directory);
  const calls: Calls = { starts: new Map(), prompts: new Map(), sampled: new Map() };
  let harness = '';
  const manifests = new Map<string, boolean>();
  for (const event of events) {
    if (event.type === 'rollout.start') harness = event.labels['harness'] ?? '';
    if (event.type === 'call.start') {
      calls.starts.set(event.call, event);
      if (event.tools.specs !== undefined) {
        manifests.set(event.tools.hash, Array.isArray(event.tools.specs) && event.tools.specs.length > 0);
      }
    }
    if (event.type === 'call.prompt') calls.prompts.set(event.call, event.prompt.length);
    if (event.type === 'call.sampled') calls.sampled.set(event.call, event);
  }
  const hasTools = (start: Of<'call.start'>): boolean => manifests.get(start.tools.hash) ?? false;
  const anyTools = [...calls.starts.values()].some(hasTools);
  const isMain = (start: Of<'call.start'>): boolean => {
    const { agent, requestClass } = start.identity ?? {};
    if (agent !== undefined) return false;
    if (requestClass !== undefined) return requestClass === 'main';
    return hasTools(start) || !anyTools;
  };
  const rootOf = (call: number): number => {
    const parent = calls.starts.get(call)?.messages.parent;
    return parent === null || parent === undefined ? call : rootOf(parent);
  };
  const last = new Map<number, number>();
  for (const call of [...calls.sampled.keys()].sort((a, b) => a - b)) {
    const start = calls.starts.get(call);
    if (start && isMain(start)) last.set(rootOf(call), call);
  }
  const conversations = [...last.entries()]
    .sort(([a], [b]) => a - b)
    .map(([, call]) => [...historyOf(call, calls), replyOf(call, calls)]);
  return { harness, conversations, calls: calls.sampled.size };
}

function historyOf(call: number, calls: Calls): Turn[] {
  const start = calls.starts.get(call);
  if (!start) return [];
  const { parent, kept, appended } = start.messages;
  const before = parent === null ? [] : [...historyOf(parent, calls), replyOf(parent, calls)].slice(0, kept);
  return [...before, ...(appended as unknown as Message[]).map((message) => ({ message, call: null }))];
}

function replyOf(call: number, calls: Calls): Turn {
  const sampled = calls.sampled.get(call);
  return {
    message: { role: 'assistant', parts: (sampled?.reply.parts ?? []) as unknown as ReplyPart[] },
    call: sampled
      ? {
          promptTokens: calls.prompts.get(call) ?? 0,
          sampledTokens: sampled.tokens.count,
          time: sampled.time,
        }
      : null,
  };
}
