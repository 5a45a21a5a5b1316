import {
  EMPTY_TOKEN_HASH,
  extendTokenHash,
  finishTokenHash,
  type RecordEvent,
  type Span,
  type TokenHashState,
} from '@treeward/telemetry';

export interface ChainRecord {
  events: RecordEvent[];
  issues: [];
  tokens(span: Span): Int32Array | null;
  logprobs(span: Span): Float32Array | null;
}

export interface ChainOptions {
  calls: number;
  /** New observation tokens and sampled tokens per call. */
  appended: number;
  sampled: number;
  /** Every so manyth call is a retry of the one before, or cuts the history back to the first prompt. 0: never. */
  retryEvery: number;
  cutEvery: number;
}

/** The record of a long rollout, in memory, written as the gateway writes it; made in time linear in its tokens. */
export function chainRecord({ calls, appended, sampled, retryEvery, cutEvery }: ChainOptions): ChainRecord {
  const words = new Int32Array(calls * (appended + 2 * sampled));
  const floats = new Float32Array(words.buffer);
  let at = 0;
  let state = 1;
  const draw = (): number => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) >>> 8;
  const take = (count: number, value: (() => number) | null): Span => {
    const span = { offset: 4 * at, count };
    for (let i = 0; i < count; i++, at++) {
      if (value) words[at] = value();
      else floats[at] = -1;
    }
    return span;
  };
  const view = ({ offset, count }: Span): Int32Array => words.subarray(offset / 4, offset / 4 + count);
  const events: RecordEvent[] = [
    { type: 'rollout.start', version: 1, rolloutId: 'chain', time: 0, template: 't', labels: {} },
  ];
  // Per call: hash after prompt and after reply, lengths, messages with the reply.
  const prompts: TokenHashState[] = [];
  const wholes: TokenHashState[] = [];
  const messages: number[] = [];
  for (let call = 0; call < calls; call++) {
    const retry = call > 0 && retryEvery > 0 && call % retryEvery === 0;
    const cut = call > 0 && !retry && cutEvery > 0 && call % cutEvery === 0;
    const parent = call === 0 ? null : cut ? 0 : call - 1;
    const base = parent === null ? EMPTY_TOKEN_HASH : retry || cut ? prompts[parent]! : wholes[parent]!;
    const keptMessages = parent === null ? 0 : messages[parent]! - (retry || cut ? 1 : 0);
    const tail = take(retry ? 0 : appended, draw);
    const hash = extendTokenHash(base, view(tail));
    const reply = take(sampled, draw);
    prompts.push(hash);
    wholes.push(extendTokenHash(hash, view(reply)));
    messages.push(keptMessages + (retry ? 0 : 1) + 1);
    const time = 10 * call;
    const user = { role: 'user', text: `result ${call}` };
    events.push(
      {
        type: 'call.start',
        call,
        time,
        dialect: 'test',
        headers: {},
        bodyHash: '',
        messages: { parent, kept: keptMessages, appended: retry ? [] : [user] },
        tools: { hash: 'none' },
        requested: {},
        unknown: [],
      },
      {
        type: 'call.prompt',
        call,
        prompt: {
          parent,
          kept: base.length,
          appended: tail,
          length: hash.length,
          hash: finishTokenHash(hash),
        },
        graft: {
          reason: parent === null ? 'root' : retry ? 'same-prompt' : cut ? 'prefix' : 'reply',
          keptMessages,
        },
      },
      {
        type: 'call.sampled',
        call,
        time: time + 5,
        tokens: reply,
        logprobs: take(sampled, null),
        finish: 'stop',
        policy: { id: 'p', version: 0 },
        sampling: { temperature: 1, bannedIds: [] },
        reply: { parts: [{ type: 'text', text: `reply ${call}` }] },
      },
      {
        type: 'call.end',
        call,
        time: time + 6,
        firstByte: time + 5,
        delivery: 'complete',
        cause: 'done',
        status: 200,
      },
    );
  }
  events.push({ type: 'verifier', time: 10 * calls, reward: 1, scores: {} });
  return {
    events,
    issues: [],
    tokens: (span) => view(span).slice(),
    logprobs: ({ offset, count }) => floats.slice(offset / 4, offset / 4 + count),
  };
}
