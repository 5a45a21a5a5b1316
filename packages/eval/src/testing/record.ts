import type { Message, ReplyPart } from '@treeward/messages';
import { RecordWriter, type Identity, type Json, type RecordEvent } from '@treeward/telemetry';

/** A call of an invented rollout. */
export interface Call {
  /** What is new beside the parent's history and reply. */
  messages: Message[];
  reply: ReplyPart[];
  parent?: number;
  /** Messages kept of the parent's history and reply. @default all of them */
  keep?: number;
  /** Whether tools are offered. @default true */
  tools?: boolean;
  identity?: Identity;
}

/** Writes the record of a rollout with these calls, each with three prompt ids and two sampled ones. */
export async function writeRecord(directory: string, harness: string, calls: readonly Call[]): Promise<void> {
  const writer = RecordWriter.open(directory);
  writer.append({
    type: 'rollout.start',
    version: 1,
    rolloutId: 'r',
    time: 1,
    template: 'compact',
    labels: { harness },
  });
  const lengths: number[] = [];
  calls.forEach((call, index) => {
    const parent = call.parent ?? null;
    const kept = parent === null ? 0 : (call.keep ?? lengths[parent]! + 1);
    lengths.push(kept + call.messages.length);
    const tools = call.tools ?? true;
    const events: RecordEvent[] = [
      {
        type: 'call.start',
        call: index,
        time: 2,
        dialect: 'openai-chat',
        headers: {},
        bodyHash: String(index),
        ...(call.identity && { identity: call.identity }),
        messages: { parent, kept, appended: call.messages as unknown as Json[] },
        tools: { hash: tools ? 'some' : 'none', specs: tools ? [{ name: 'Read' }] : [] },
        requested: {},
        unknown: [],
      },
      {
        type: 'call.prompt',
        call: index,
        prompt: {
          parent: null,
          kept: 0,
          appended: writer.tokens(Int32Array.of(1, 2, 3)),
          length: 3,
          hash: 'h',
        },
        graft: { reason: 'root', keptMessages: 0 },
      },
      {
        type: 'call.sampled',
        call: index,
        time: 3,
        tokens: writer.tokens(Int32Array.of(5, 6)),
        logprobs: writer.logprobs(Float32Array.of(-1, -1)),
        finish: 'stop',
        policy: { id: 'p', version: 0 },
        sampling: {},
        reply: { parts: call.reply as unknown as Json[] },
      },
    ];
    for (const event of events) writer.append(event);
  });
  writer.append({ type: 'rollout.end', time: 9, status: 'completed' });
  await writer.close();
}
