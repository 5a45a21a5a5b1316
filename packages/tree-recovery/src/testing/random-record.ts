import fc from 'fast-check';
import type { Json } from '@treeward/telemetry';
import { RecordBuilder, type BuiltCall } from './record-builder.js';

/** One step of a made-up harness. `of` picks an earlier call. */
interface Step {
  kind: 'root' | 'continue' | 'retry' | 'partial' | 'cut';
  of: number;
  /** How much of the reply (partial) or of the prompt (cut) is kept. */
  part: number;
  tail: number[];
  reply: number[] | null;
  overlap: boolean;
  delta: boolean;
  logprobs: 'fine' | 'nan' | 'short' | 'lost';
  delivery: 'complete' | 'partial' | 'none';
  cause: 'done' | 'client' | 'gateway' | 'engine';
  version: number;
  malformed: boolean;
  /** Wins over what `kind` says about messages: a history that was rendered anew. */
  rewritten: boolean;
}

// Few different tokens, so that equal prefixes, equal replies and partial echoes are common.
const token = fc.integer({ min: 0, max: 2 });
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('root', 'continue', 'continue', 'continue', 'retry', 'retry', 'partial', 'cut'),
  of: fc.nat({ max: 1000 }),
  part: fc.double({ min: 0, max: 1, noNaN: true }),
  tail: fc.array(token, { maxLength: 4 }),
  reply: fc.option(fc.array(token, { maxLength: 4 }), { freq: 9 }),
  overlap: fc.boolean(),
  delta: fc.boolean(),
  logprobs: fc.constantFrom('fine', 'fine', 'fine', 'nan', 'short', 'lost'),
  delivery: fc.constantFrom('complete', 'complete', 'complete', 'partial', 'none'),
  cause: fc.constantFrom('done', 'done', 'client', 'gateway', 'engine'),
  version: fc.integer({ min: -1, max: 2 }),
  malformed: fc.boolean(),
  rewritten: fc.boolean(),
});

export interface RandomRecord {
  builder: RecordBuilder;
  /** What was put in: the truth that a recovered tree is held against. */
  calls: BuiltCall[];
}

export interface RandomRecordOptions {
  /** End every reply in a token of its own, so that token prefixes alone decide everything. @default false */
  distinctReplies?: boolean;
  /** Store prompts as deltas, in full, or as each step says. @default 'mixed' */
  storage?: 'delta' | 'full' | 'mixed';
}

const steps = fc.array(step, { minLength: 1, maxLength: 12 });

export function randomRecord(options: RandomRecordOptions = {}): fc.Arbitrary<RandomRecord> {
  return steps.map((list) => build(list, options));
}

/** The same rollout stored in two ways. */
export function storedTwice(options: RandomRecordOptions = {}): fc.Arbitrary<[RandomRecord, RandomRecord]> {
  return steps.map((list) => [
    build(list, { ...options, storage: 'delta' }),
    build(list, { ...options, storage: 'full' }),
  ]);
}

function build(list: readonly Step[], options: RandomRecordOptions): RandomRecord {
  const calls: BuiltCall[] = [];
  const histories: Json[][] = [];
  let clock = 1;
  list.forEach((one, call) => {
    const source = calls.length > 0 ? calls[one.of % calls.length]! : null;
    const kind = source ? one.kind : 'root';
    const sourceReply = source?.reply ?? [];
    const kept =
      kind === 'root' || !source
        ? 0
        : kind === 'continue'
          ? source.prompt.length + sourceReply.length
          : kind === 'retry'
            ? source.prompt.length
            : kind === 'partial'
              ? source.prompt.length + Math.floor(one.part * sourceReply.length)
              : Math.floor(one.part * source.prompt.length);
    const before = source ? [...source.prompt, ...sourceReply].slice(0, kept) : [];
    const prompt = kind === 'retry' ? before : [...before, ...one.tail];
    let reply = one.reply;
    if (reply && options.distinctReplies) reply = [...reply, 1000 + call];
    // A call can only hold (a part of) a reply that has finished; anything else may run beside the newest call.
    const start =
      one.overlap && kind !== 'continue' && kind !== 'partial' && calls.length > 0
        ? calls.at(-1)!.start + (calls.at(-1)!.finish - calls.at(-1)!.start) / 2
        : clock;
    const finish = Math.max(clock, start) + 1;
    clock = finish + 1;

    const history = source ? histories[source.call]! : [];
    const tail: Json[] = [{ role: 'user', text: `tail ${one.tail.join()}` }];
    const continues = kind === 'continue' && source?.reply != null && !one.rewritten;
    const messages =
      continues || (kind === 'retry' && !one.rewritten)
        ? {
            parent: source!.call,
            kept: history.length + (continues ? 1 : 0),
            appended: continues ? tail : [],
          }
        : { parent: null, kept: 0, appended: [{ role: 'user', text: `${prompt.join()}` }] };
    const parts: Json[] = [{ type: 'text', text: `${(reply ?? []).join()}` }];
    histories.push(
      messages.parent === null
        ? messages.appended
        : continues
          ? [...history, { role: 'assistant', parts: source!.parts ?? [] }, ...tail]
          : history,
    );
    const delta = options.storage === 'delta' || (options.storage !== 'full' && one.delta);
    calls.push({
      call,
      start,
      finish,
      prompt,
      reply,
      logprobs: one.logprobs,
      ...(delta && source && kind !== 'root'
        ? {
            from: {
              parent: source.call,
              kept,
              reason: kind === 'continue' ? 'reply' : kind === 'retry' ? 'same-prompt' : 'prefix',
            } as const,
          }
        : {}),
      messages,
      parts,
      delivery: one.delivery,
      cause: one.cause,
      version: one.version,
      ...(one.malformed ? { malformed: 'bad' } : {}),
    });
  });
  const builder = new RecordBuilder();
  for (const call of calls) builder.call(call);
  return { builder: builder.end(), calls };
}
