import { TreewardError } from '@treeward/base';
import type { CallSampled } from '@treeward/telemetry';
import { afterEach, describe, expect, it } from 'vitest';
import { ChatEngine } from './testing/chat-engine.js';
import {
  messagesBody,
  resultFor,
  template,
  testGateway,
  turnOf,
  type TestGateway,
} from './testing/harness.js';

let test: TestGateway;
afterEach(() => test.dispose());

const user = (content: unknown) => ({ role: 'user', content });

const sampledOf = (events: readonly { type: string }[]): CallSampled[] =>
  events.filter((event): event is CallSampled => event.type === 'call.sampled');

describe('an upstream without ids', () => {
  it('is asked by messages, and its text gets surrogate ids that the conversation grows on', async () => {
    const engine = new ChatEngine();
    test = testGateway({ engine });
    const rollout = await test.open('one');
    engine.answer = ({ messages }) =>
      messages.length > 3
        ? {}
        : { parts: [{ type: 'tool_call', id: 'theirs', name: 'Read', arguments: { file_path: 'the' } }] };
    const first = await rollout.ask({ body: messagesBody([user('do the task')]) });
    expect(first.json).toMatchObject({
      stop_reason: 'tool_use',
      usage: { input_tokens: 1234, output_tokens: 56 },
      content: [{ type: 'tool_use', name: 'Read', input: { file_path: 'the' } }],
    });
    expect(first.json.content[0].id).toMatch(/^toolu_/);
    const second = await rollout.ask({
      body: messagesBody([user('do the task'), turnOf(first), resultFor(first, 'read')]),
    });
    expect(second.json.content).toEqual([{ type: 'text', text: 'answer 2 of the other' }]);

    // What the harness said, tools and system prompt included, under this rollout's tag.
    expect(engine.requests[1]).toMatchObject({
      tag: 'one',
      tools: [{ name: 'Read' }],
      messages: [
        { role: 'system', text: 'be good' },
        { role: 'user', text: 'do the task' },
        { role: 'assistant', parts: [{ type: 'tool_call', name: 'Read' }] },
        { role: 'tool', text: 'read' },
      ],
    });

    const summary = await test.gateway.close('one');
    expect(summary).toMatchObject({ promptTokens: 2468, sampledTokens: 112, engineFailure: null });
    const sampled = sampledOf(rollout.events());
    expect(sampled.map(({ ids, policy }) => [ids, policy])).toEqual([
      ['surrogate', { id: 'vendor-large-1', version: 0 }],
      ['surrogate', { id: 'vendor-large-1', version: 0 }],
    ]);
    const calls = rollout.tokens();
    const whole = [...calls.get(0)!.prompt, ...calls.get(0)!.sampled!];
    expect([...calls.get(0)!.sampled!]).toEqual([
      ...template.reply([{ type: 'tool_call', id: '', name: 'Read', arguments: { file_path: 'the' } }]),
    ]);
    expect(calls.get(1)!.graft).toEqual({ reason: 'reply', keptMessages: 3 });
    expect([...calls.get(1)!.prompt.subarray(0, whole.length)]).toEqual(whole);
    expect([...rollout.logprobs(0)].every(Number.isNaN)).toBe(true);
    expect(rollout.events()[1]).toMatchObject({ type: 'engine', facts: { name: 'chat', ids: false } });
  });

  it('decides by itself what is too long, and says so in its own words', async () => {
    const engine = new ChatEngine();
    test = testGateway({ engine });
    const rollout = await test.open('one');
    // Far more surrogate ids than its window: ours are not its tokens.
    expect((await rollout.ask({ body: messagesBody([user('x'.repeat(5000))]) })).status).toBe(200);
    engine.faults = [new TreewardError('ENGINE_E_CONTEXT', 'too long')];
    const refused = await rollout.ask({ body: messagesBody([user('y')]) });
    expect(refused.status).toBe(400);
    expect(refused.json.error.message).toContain('prompt is too long');
  });

  it('is asked again after 5xx and 429, and not after what no retry can mend', async () => {
    const engine = new ChatEngine();
    test = testGateway({ engine });
    const fault = (status: number): Error =>
      new TreewardError('ENGINE_E_UPSTREAM', `answered ${status}`, { data: { status } });
    engine.faults = [503, 500, 529, 429, 502].map(fault);
    const rollout = await test.open('one');
    expect((await rollout.ask({ body: messagesBody([user('a')]) })).status).toBe(200);
    expect(engine.requests.length).toBe(6);
    engine.faults = [fault(401)];
    expect((await rollout.ask({ body: messagesBody([user('b')]) })).status).toBe(529);
    expect(engine.requests.length).toBe(7);
    expect((await test.gateway.status('one')).engineFailure).toContain('answered 401');
  });
});

describe('sampling that a request asks for', () => {
  const wishes = {
    temperature: 0.3,
    top_p: 0.5,
    top_k: 7,
    max_tokens: 20,
    stop_sequences: ['END'],
    output_config: { effort: 'low' },
  };

  it.each([
    ['config', { temperature: 1, topP: 1, maxTokens: 20 }, ['temperature', 'topP', 'topK', 'stop', 'effort']],
    [
      'request',
      { temperature: 0.3, topP: 0.5, topK: 7, maxTokens: 20, stop: ['END'], effort: 'low' },
      undefined,
    ],
  ] as const)('reaches an upstream from %s', async (samplingFrom, asked, notFollowed) => {
    const engine = new ChatEngine();
    test = testGateway({ engine });
    const rollout = await test.open('one', { samplingFrom });
    await rollout.ask({ body: messagesBody([user('a')], wishes) });
    await test.gateway.close('one');
    expect(engine.requests[0]!.sampling).toEqual(asked);
    expect(sampledOf(rollout.events())[0]!.sampling).toEqual({
      ...asked,
      ...(notFollowed && { notFollowed }),
    });
  });

  it('is recorded as the upstream was told it, where its engine left something out', async () => {
    const engine = new ChatEngine();
    engine.answer = () => ({ sampling: { temperature: 0.3, topP: 0.5, maxTokens: 20 } });
    test = testGateway({ engine });
    const rollout = await test.open('one', { samplingFrom: 'request' });
    await rollout.ask({ body: messagesBody([user('a')], wishes) });
    await test.gateway.close('one');
    expect(sampledOf(rollout.events())[0]!.sampling).toEqual({
      temperature: 0.3,
      topP: 0.5,
      maxTokens: 20,
      notFollowed: ['topK', 'stop', 'effort'],
    });
  });

  it.each([
    ['config', { temperature: 1, topP: 1, topK: 0 }, ['temperature', 'topP', 'topK', 'stop', 'effort']],
    ['request', { temperature: 0.3, topP: 0.5, topK: 7 }, ['stop', 'effort']],
  ] as const)(
    'reaches an engine with ids from %s, and what is not followed is said',
    async (from, used, not) => {
      test = testGateway();
      const rollout = await test.open('one', { samplingFrom: from });
      await rollout.ask({ body: messagesBody([user('a')], wishes) });
      await test.gateway.close('one');
      expect(test.engine.requests[0]!.sampling).toMatchObject({ ...used, maxTokens: 20 });
      const events = rollout.events();
      expect(events.find(({ type }) => type === 'call.start')).toMatchObject({
        requested: { temperature: 0.3, topP: 0.5, topK: 7, maxTokens: 20, stop: ['END'], effort: 'low' },
      });
      expect(sampledOf(events)[0]!.sampling).toMatchObject({ ...used, maxTokens: 20, notFollowed: not });
    },
  );

  it('tells an upstream how much to think where the configuration says it, whatever the request says', async () => {
    const engine = new ChatEngine();
    test = testGateway({ engine });
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 90, effort: 'high' };
    const rollout = await test.open('one', { sampling });
    await rollout.ask({ body: messagesBody([user('a')], wishes) });
    await test.gateway.close('one');
    expect(engine.requests[0]!.sampling).toEqual({ temperature: 1, topP: 1, maxTokens: 20, effort: 'high' });
    expect(sampledOf(rollout.events())[0]!.sampling).toMatchObject({
      effort: 'high',
      notFollowed: ['temperature', 'topP', 'topK', 'stop', 'effort'],
    });
  });

  it('is not followed where no engine could', async () => {
    test = testGateway();
    const rollout = await test.open('one', { samplingFrom: 'request' });
    await rollout.ask({ body: messagesBody([user('a')], { temperature: -1, top_p: 0, max_tokens: 1e9 }) });
    await test.gateway.close('one');
    expect(sampledOf(rollout.events())[0]!.sampling).toMatchObject({
      temperature: 1,
      topP: 1,
      maxTokens: 90,
      notFollowed: ['temperature', 'topP', 'maxTokens'],
    });
  });
});
