import type { Message, ToolSpec } from '@treeward/messages';
import { readRecord, type RecordEvent } from '@treeward/telemetry';

export interface Conversation {
  tools: ToolSpec[];
  /** The whole episode, final reply included, as the gateway saw it after canonicalisation. */
  messages: Message[];
}

type Of<T extends RecordEvent['type']> = Extract<RecordEvent, { type: T }>;

/**
 * The longest conversation in a record: the messages of its last call plus that call's reply. Null when nothing was sampled.
 * A call's messages are its parent's (whose reply counts as one more), cut, plus what is new.
 */
export function lastConversation(directory: string): Conversation | null {
  const { events } = readRecord(directory);
  const starts = new Map<number, Of<'call.start'>>();
  const replies = new Map<number, Of<'call.sampled'>>();
  const manifests = new Map<string, ToolSpec[]>();
  for (const event of events) {
    if (event.type === 'call.start') {
      starts.set(event.call, event);
      if (event.tools.specs) manifests.set(event.tools.hash, event.tools.specs as unknown as ToolSpec[]);
    }
    if (event.type === 'call.sampled') replies.set(event.call, event);
  }
  const messagesOf = (call: number): Message[] => {
    const start = starts.get(call)!;
    const { parent, kept, appended } = start.messages;
    const before = parent === null ? [] : [...messagesOf(parent), replyOf(parent)].slice(0, kept);
    return [...before, ...(appended as unknown as Message[])];
  };
  const replyOf = (call: number): Message => ({
    role: 'assistant',
    parts: (replies.get(call)?.reply.parts ?? []) as unknown as never[],
  });
  const last = [...replies.keys()].sort((a, b) => b - a)[0];
  if (last === undefined) return null;
  return {
    tools: manifests.get(starts.get(last)!.tools.hash) ?? [],
    messages: [...messagesOf(last), replyOf(last)],
  };
}
