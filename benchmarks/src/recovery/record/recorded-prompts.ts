import type { RecordInput } from '@treeward/tree-recovery';

export interface RecordedPrompt {
  call: number;
  prompt: Int32Array;
  sampled: Int32Array | null;
}

/** Whole prompts put together from a record's deltas, by call; without those whose source is not in the record. */
export function recordedPrompts(record: RecordInput): RecordedPrompt[] {
  const prompts = record.events
    .flatMap((event) => (event.type === 'call.prompt' ? [event] : []))
    .sort((a, b) => a.call - b.call);
  const sampled = new Map(
    record.events.flatMap((event) =>
      event.type === 'call.sampled' ? [[event.call, record.tokens(event.tokens)] as const] : [],
    ),
  );
  const known = new Map<number, RecordedPrompt>();
  for (const { call, prompt } of prompts) {
    if (known.has(call)) continue;
    const appended = record.tokens(prompt.appended);
    const source = prompt.parent === null ? null : known.get(prompt.parent);
    if (!appended || source === undefined) continue;
    const kept = new Int32Array(prompt.kept);
    if (source) {
      const own = source.prompt.subarray(0, prompt.kept);
      kept.set(own);
      const rest = prompt.kept - own.length;
      if (rest > 0) {
        if (!source.sampled || source.sampled.length < rest) continue;
        kept.set(source.sampled.subarray(0, rest), own.length);
      }
    }
    const whole = new Int32Array(kept.length + appended.length);
    whole.set(kept);
    whole.set(appended, kept.length);
    known.set(call, { call, prompt: whole, sampled: sampled.get(call) ?? null });
  }
  return [...known.values()];
}
