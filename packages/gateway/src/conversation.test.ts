import { canonicalKey, type Message } from '@treeward/messages';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Conversation } from './conversation.js';
import { EncodedText } from './encoded-text.js';
import { inlineEncoder } from './encoder.js';
import { callIds, textIds } from './testing/fake-engine.js';
import { template } from './testing/harness.js';
import { hashTokens } from '@treeward/telemetry';

const tools = [{ name: 'Read', description: '', parameters: { type: 'object', required: ['file_path'] } }];
const user = (text: string): Message => ({ role: 'user', text });
const result = (text: string): Message => ({ role: 'tool', callId: '', text });
const fresh = (): Conversation => new Conversation(template, new EncodedText(inlineEncoder(template)));

async function sample(conversation: Conversation, call: number, messages: Message[], sampled: Int32Array) {
  const grown = await conversation.grow(tools, messages);
  conversation.begin(call, grown);
  const reply: Message = { role: 'assistant', parts: template.parse(sampled).parts };
  conversation.reply(call, reply, sampled);
  return { grown, reply, whole: [...grown.ids, ...sampled] };
}

describe('growing a prompt', () => {
  it('keeps earlier ids exactly and adds only the new tail', async () => {
    const conversation = fresh();
    const first = await sample(
      conversation,
      0,
      [user('do')],
      callIds(template, 'Read', 'file_path', 'the.txt'),
    );
    expect(first.grown).toMatchObject({
      graft: { reason: 'root', keptMessages: 0 },
      parent: null,
      keptIds: 0,
    });
    const history = [user('do'), first.reply];
    // What the test stands on: the text of the reply encodes to other ids than those sampled.
    expect([...template.message(first.reply)].join()).not.toBe(
      first.whole.slice(first.grown.ids.length - 1).join(),
    );

    const next = await conversation.grow(tools, [...history, result('R')]);
    expect(next).toMatchObject({
      graft: { reason: 'reply', keptMessages: 2 },
      parent: 0,
      keptIds: first.whole.length,
    });
    expect([...next.ids]).toEqual([...first.whole, ...template.message(result('R')), ...template.generation]);
    expect(next.hash).toBe(hashTokens(next.ids));
  });

  it('without grafting, renders everything from its text', async () => {
    const conversation = new Conversation(template, new EncodedText(inlineEncoder(template)), {
      graft: false,
    });
    const sampled = callIds(template, 'Read', 'file_path', 'the.txt');
    const first = await sample(conversation, 0, [user('do')], sampled);
    const history = [user('do'), first.reply, result('R')];
    const next = await conversation.grow(tools, history);
    expect(next).toMatchObject({ parent: null, keptIds: 0, graft: { reason: 'rewritten' } });
    expect([...next.ids]).toEqual([
      ...template.head(tools),
      ...history.flatMap((message) => [...template.message(message)]),
      ...template.generation,
    ]);
  });

  it('gives a retry the identical ids', async () => {
    const conversation = fresh();
    const first = await sample(conversation, 0, [user('do')], textIds(template, 'x'));
    const retry = await conversation.grow(tools, [user('do')]);
    expect(retry).toMatchObject({
      graft: { reason: 'same-prompt', keptMessages: 1 },
      parent: 0,
      keptIds: first.grown.ids.length,
    });
    expect([...retry.ids]).toEqual([...first.grown.ids]);
  });

  it('cuts back to where a rollback branches off', async () => {
    const conversation = fresh();
    const first = await sample(conversation, 0, [user('do')], textIds(template, 'one'));
    const history = [user('do'), first.reply, user('more')];
    await sample(conversation, 1, history, textIds(template, 'two'));
    const back = await conversation.grow(tools, [user('do'), first.reply, user('other')]);
    expect(back).toMatchObject({ graft: { reason: 'reply' }, parent: 0, keptIds: first.whole.length });
    const early = await conversation.grow(tools, [user('do'), user('again')]);
    expect(early).toMatchObject({ graft: { reason: 'prefix', keptMessages: 1 }, parent: 0 });
    expect([...early.ids]).toEqual([
      ...template.head(tools),
      ...template.message(user('do')),
      ...template.message(user('again')),
      ...template.generation,
    ]);
  });

  it('renders a rewritten history from its text behind the last message that still agrees', async () => {
    const conversation = fresh();
    const first = await sample(conversation, 0, [user('do')], textIds(template, 'the one'));
    const second = await sample(
      conversation,
      1,
      [user('do'), first.reply, user('more')],
      textIds(template, 'the two'),
    );
    const merged: Message = { role: 'assistant', parts: [{ type: 'text', text: 'the one, the two' }] };
    const rewritten = await conversation.grow(tools, [user('do'), merged, user('end')]);
    expect(rewritten).toMatchObject({
      graft: { reason: 'rewritten', keptMessages: 1, rewrite: { message: 1, call: 0 } },
      parent: 0,
    });
    expect([...rewritten.ids]).toEqual([
      ...template.head(tools),
      ...template.message(user('do')),
      ...template.message(merged),
      ...template.message(user('end')),
      ...template.generation,
    ]);
    // A result that changed in the middle: our own later reply stands behind it, so this is no plain continuation.
    const middle = await conversation.grow(tools, [
      user('do'),
      first.reply,
      user('MORE'),
      second.reply,
      user('end'),
    ]);
    expect(middle).toMatchObject({
      graft: { reason: 'rewritten', keptMessages: 2, rewrite: { message: 2, call: 0 } },
      parent: 0,
      keptIds: first.whole.length,
    });
    const unknown = await conversation.grow(tools, [user('new'), merged, user('end')]);
    expect(unknown.graft).toEqual({
      reason: 'rewritten',
      keptMessages: 0,
      rewrite: { message: 0, call: null },
    });
  });

  it('does not lose a graft to a system prompt that the template drops', async () => {
    const conversation = fresh();
    const system = (text: string): Message => ({ role: 'system', text });
    const first = await sample(conversation, 0, [system('a'), user('do')], textIds(template, 'x'));
    const next = await conversation.grow(tools, [
      system('b'),
      user('do'),
      first.reply,
      system('c'),
      user('y'),
    ]);
    expect(next).toMatchObject({ graft: { reason: 'reply', keptMessages: 4 }, keptIds: first.whole.length });
  });

  it('opens a new root for another tool manifest', async () => {
    const conversation = fresh();
    const first = await sample(conversation, 0, [user('do')], textIds(template, 'x'));
    const other = await conversation.grow([], [user('do'), first.reply, user('y')]);
    expect(other).toMatchObject({ graft: { reason: 'rewritten' }, parent: null, keptIds: 0 });
    expect(await conversation.grow([], [user('do')])).toMatchObject({
      graft: { reason: 'root' },
      parent: null,
    });
  });
});

const keysOf = (messages: Message[], reply: Message): string =>
  JSON.stringify([...messages, reply].map(canonicalKey));

describe('any history that a harness can build', () => {
  // Each step takes some earlier call and goes on from it, asks it again, cuts it back, or changes something inside.
  const step = fc.record({
    from: fc.nat(),
    how: fc.constantFrom('continue', 'retry', 'cut', 'edit'),
    at: fc.nat(),
    text: fc.constantFrom('a', 'the', 'b c', ''),
    reply: fc.constantFrom('the x', 'y', '', 'the'),
  });

  it('keeps what it claims to keep, and the whole is what the messages say', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
        const conversation = fresh();
        const calls: { messages: Message[]; reply: Message; whole: number[] }[] = [];
        for (const { from, how, at, text, reply } of steps) {
          const earlier = calls[from % Math.max(calls.length, 1)];
          let messages: Message[] = [user('task')];
          if (earlier) {
            const history = [...earlier.messages, earlier.reply];
            if (how === 'retry') messages = earlier.messages;
            else if (how === 'continue') messages = [...history, result(text)];
            else if (how === 'cut') messages = [...history.slice(0, at % history.length), user(text)];
            else
              messages = history.map((message, i) =>
                i === at % history.length ? user(`${text}!`) : message,
              );
          }
          const call = calls.length;
          const made = await sample(conversation, call, messages, textIds(template, reply));
          const { grown } = made;

          const parent = grown.parent === null ? [] : calls[grown.parent]!.whole;
          expect(grown.ids.subarray(0, grown.keptIds).join()).toBe(parent.slice(0, grown.keptIds).join());
          expect(grown.hash).toBe(hashTokens(grown.ids));
          // Decoding sees text only: the same whether ids were sampled or encoded.
          const rendered = [...messages.map((message) => template.decode(template.message(message)))].join(
            '',
          );
          expect(template.decode(grown.ids)).toBe(
            template.decode(template.head(tools)) + rendered + template.decode(template.generation),
          );
          if (how === 'continue' && earlier) {
            // Sampled ids, to the last one: those of this call, or of one with the same history and reply.
            const keys = keysOf(earlier.messages, earlier.reply);
            const twins = calls.filter((twin) => keysOf(twin.messages, twin.reply) === keys);
            const prompt = [...grown.ids].join();
            expect(twins.some(({ whole }) => prompt.startsWith(`${whole.join()},`))).toBe(true);
          }
          calls.push({ messages, reply: made.reply, whole: made.whole });
        }
      }),
      { numRuns: 150 },
    );
  });
});
