import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';
import { createTemplate } from '@treeward/policy';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { Conversation } from './conversation.js';
import { EncodedText } from './encoded-text.js';
import { inlineEncoder, threadedEncoder } from './encoder.js';
import { messageKey } from './message-key.js';
import { textIds } from './testing/fake-engine.js';
import { messagesBody, smallTokenizer, template, testGateway } from './testing/harness.js';

const user = (text: string): Message => ({ role: 'user', text });
const said = (text: string): Message => ({ role: 'assistant', parts: [{ type: 'text', text }] });

/** The template, and every message that it was asked to encode. */
function listening(): { heard: Message[]; template: ChatTemplate } {
  const heard: Message[] = [];
  const spy: ChatTemplate = {
    id: template.id,
    vocabSize: template.vocabSize,
    stopIds: template.stopIds,
    bannedIds: template.bannedIds,
    generation: template.generation,
    head: (tools) => template.head(tools),
    message(message) {
      heard.push(message);
      return template.message(message);
    },
    reply: (parts) => template.reply(parts),
    parse: (sampled) => template.parse(sampled),
    decode: (ids) => template.decode(ids),
  };
  return { heard, template: spy };
}

describe('sampled text', () => {
  const step = fc.record({
    how: fc.constantFrom('continue', 'retry', 'branch'),
    from: fc.nat(),
    reply: fc.constantFrom('the one', 'a', '', 'the one two'),
    text: fc.constantFrom('the next', 'r', '', 'the end'),
  });

  it('is never encoded where the history is kept: its ids are those that were sampled', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const { heard, template: spy } = listening();
        const conversation = new Conversation(spy, new EncodedText(inlineEncoder(spy)));
        const calls: { messages: Message[]; reply: Message; whole: number[] }[] = [];
        for (const { how, from, reply, text } of steps) {
          const earlier = calls[from % Math.max(1, calls.length)];
          const history = earlier ? [...earlier.messages, earlier.reply] : [user('task')];
          let messages = history;
          if (earlier && how === 'retry') messages = earlier.messages;
          else if (earlier && how === 'continue') messages = [...history, user(text)];
          else if (earlier) messages = [...earlier.messages.slice(0, -1), user(`other ${text}`)];
          const grown = await conversation.grow([], messages);
          expect(['root', 'reply', 'same-prompt', 'prefix']).toContain(grown.graft.reason);
          expect(grown.graft.rewrite).toBeUndefined();
          const call = calls.length;
          conversation.begin(call, grown);
          const sampled = textIds(template, reply);
          conversation.reply(call, said(reply), sampled);
          const parent = grown.parent === null ? null : calls[grown.parent]!;
          const whole = [...grown.ids, ...sampled];
          if (parent) expect(whole.slice(0, grown.keptIds)).toEqual(parent.whole.slice(0, grown.keptIds));
          calls.push({ messages, reply: said(reply), whole });
        }
        expect(heard.filter(({ role }) => role === 'assistant')).toEqual([]);
      }),
      { numRuns: 120 },
    );
  });

  it('is encoded from text only behind a place that the harness changed, which is named', async () => {
    const { heard, template: spy } = listening();
    const conversation = new Conversation(spy, new EncodedText(inlineEncoder(spy)));
    const history: Message[] = [user('task')];
    for (let call = 0; call < 4; call++) {
      conversation.begin(call, await conversation.grow([], history));
      conversation.reply(call, said(`reply ${call}`), textIds(template, `reply ${call}`));
      history.push(said(`reply ${call}`), user(`result ${call}`));
    }
    const changed = history.with(4, user('other result'));
    const grown = await conversation.grow([], changed);
    expect(grown).toMatchObject({
      parent: 1,
      graft: { reason: 'rewritten', keptMessages: 4, rewrite: { message: 4, call: 1 } },
    });
    const encoded = heard.filter(({ role }) => role === 'assistant');
    expect(encoded).toEqual([said('reply 2'), said('reply 3')]);
  });
});

describe('a text that rollouts share', () => {
  it('is encoded once, and an evicted one is not needed again by who has seen it', async () => {
    const { heard, template: spy } = listening();
    const encoded = new EncodedText(inlineEncoder(spy), 500);
    const rollouts = Array.from({ length: 5 }, () => new Conversation(spy, encoded));
    const shared = [user('the system of all'), user('the task of all')];
    for (const rollout of rollouts) rollout.begin(0, await rollout.grow([], shared));
    expect(heard).toHaveLength(2);
    await rollouts[0]!.grow([], [...shared, user('x'.repeat(600))]); // pushes the others out
    heard.length = 0;
    await rollouts[1]!.grow([], [...shared, user('more')]);
    expect(heard).toEqual([user('more')]);
  });
});

describe('encoding threads', () => {
  const spec = {
    kind: 'compact' as const,
    tokenizer: join(import.meta.dirname, '../../policy/src/__fixtures__/tokenizer.json'),
  };
  const real = createTemplate(spec);
  const encoder = threadedEncoder(real, { template: spec, inlineBelow: 100 });
  afterAll(() => encoder.close());

  it('give the ids that the template gives, each text once, in whatever order they are ready', async () => {
    const encoded = new EncodedText(encoder);
    const texts = Array.from({ length: 20 }, (_, i) => `${i} ${'the file of names '.repeat(i * 5)}`);
    const [first, second] = [0, 1].map(() =>
      texts.map((text) => encoded.message(user(text), messageKey(user(text)))),
    );
    expect(first!.some((ids) => ids instanceof Promise)).toBe(true);
    expect(first![0]).toBeInstanceOf(Int32Array);
    const [a, b] = await Promise.all([Promise.all(first!), Promise.all(second!)]);
    expect(a.map((ids) => [...ids])).toEqual(texts.map((text) => [...real.message(user(text))]));
    b.forEach((ids, i) => expect(ids).toBe(a[i]));
    expect(encoded.encodings).toBe(texts.length);
    const tools = [{ name: 'T', description: 'd'.repeat(200), parameters: { type: 'object' } }];
    expect([...(await encoded.head(tools, 'h')).ids]).toEqual([...real.head(tools)]);
  });

  it('fail in words when they make another template', async () => {
    const other = threadedEncoder(template, {
      template: { ...spec, tokenizer: '/nowhere/tokenizer.json' },
      inlineBelow: 0,
    });
    await expect(other.message(user('x'))).rejects.toMatchObject({ code: 'GATEWAY_E_ENCODE' });
    await other.close();
  });

  it('do not change the order: a request that came later is matched against the earlier one', async () => {
    const tokenizer = join(mkdtempSync(join(tmpdir(), 'tw-tok-')), 'tokenizer.json');
    writeFileSync(tokenizer, JSON.stringify(smallTokenizer.toJson()));
    const test = testGateway({ encodeOn: { template: { kind: 'compact', tokenizer }, inlineBelow: 200 } });
    test.engine.contextLength = 100_000;
    const rollout = await test.open('one');
    const long = { role: 'user', content: 'the long text '.repeat(3000) };
    const bodies = [
      [long],
      [{ role: 'user', content: 'short' }],
      [long],
      [long, { role: 'user', content: 'x' }],
    ];
    const answers = await Promise.all(
      bodies.map((messages) => rollout.ask({ body: messagesBody(messages) })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await test.gateway.close('one');
    const prompts = rollout.events().flatMap((event) => (event.type === 'call.prompt' ? [event] : []));
    expect(prompts.map(({ call }) => call)).toEqual([0, 1, 2, 3]);
    const longCalls = prompts.flatMap(({ call, prompt }) => (prompt.length > 1000 ? [call] : []));
    // Of those that begin with the long text all but the first continue an earlier one, whoever of them came first.
    expect(longCalls).toHaveLength(3);
    expect(prompts[longCalls[0]!]!.prompt.parent).toBeNull();
    expect(longCalls.slice(1).every((call) => longCalls.includes(prompts[call]!.prompt.parent!))).toBe(true);
    expect(rollout.tokens().size).toBe(4);
    await test.dispose();
  });
});
