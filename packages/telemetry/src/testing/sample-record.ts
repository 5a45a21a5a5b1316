import type { CallPrompt, CallSampled, RecordEvent, RolloutStart } from '../types.js';
import { RecordWriter } from '../writer.js';

export const sampleStart: RolloutStart = {
  type: 'rollout.start',
  version: 1,
  rolloutId: 'r1',
  time: 1,
  template: 'compact',
  labels: {},
};
export const sampleEnd: RecordEvent = { type: 'rollout.end', time: 9, status: 'completed' };

/** One call with three prompt ids and two sampled ones, text that is not ASCII. Returns its events. */
export async function writeSampleRecord(directory: string): Promise<RecordEvent[]> {
  const writer = RecordWriter.open(directory);
  const prompt: CallPrompt = {
    type: 'call.prompt',
    call: 0,
    prompt: { parent: null, kept: 0, appended: writer.tokens(Int32Array.of(1, 2, 3)), length: 3, hash: 'h' },
    graft: { reason: 'root', keptMessages: 0 },
  };
  const sampled: CallSampled = {
    type: 'call.sampled',
    call: 0,
    time: 3,
    tokens: writer.tokens(Int32Array.of(5, 6)),
    logprobs: writer.logprobs(Float32Array.of(-0.25, Number.NaN)),
    finish: 'stop',
    policy: { id: 'p', version: 0 },
    sampling: { temperature: 1 },
    reply: { parts: [{ type: 'text', text: 'Grüße → 🙂' }] },
  };
  const events: RecordEvent[] = [
    sampleStart,
    {
      type: 'call.start',
      call: 0,
      time: 2,
      dialect: 'openai',
      headers: {},
      bodyHash: 'b',
      messages: { parent: null, kept: 0, appended: [{ role: 'user', text: 'hi' }] },
      tools: { hash: 'none' },
      requested: {},
      unknown: [],
    },
    prompt,
    sampled,
    {
      type: 'call.end',
      call: 0,
      time: 4,
      firstByte: null,
      delivery: 'none',
      cause: 'client',
      status: 200,
    },
    sampleEnd,
  ];
  for (const event of events) writer.append(event);
  await writer.close();
  return events;
}
