import assert from 'node:assert/strict';
import { isId, whole, type Heard, type Told } from './sse-events.js';

/* eslint-disable @typescript-eslint/no-explicit-any */

/** The life cycle of Chat Completions. */
export function readChat(heard: readonly Heard[], usageAsked: boolean): Told {
  const told: Told = { parts: [], stop: null, usage: null, error: null, beats: 0 };
  let state: 'new' | 'role' | 'text' | 'calls' | 'finish' | 'usage' | 'over' = 'new';
  let first: any = null;
  let text = '';
  const calls: { id: string; name: string; json: string }[] = [];
  const at = (...legal: (typeof state)[]): void => assert.ok(legal.includes(state), `in state ${state}`);
  for (const { event, data } of heard) {
    assert.equal(event, null, 'events of this dialect have no name');
    if (data === null) {
      at('role');
      told.beats++;
      continue;
    }
    if (data === '[DONE]') {
      at(usageAsked ? 'usage' : 'finish');
      state = 'over';
      continue;
    }
    if (data.error) {
      at('role');
      told.error = { code: data.error.code ?? data.error.type, message: data.error.message };
      state = 'over';
      continue;
    }
    const { id, object, created, model } = data;
    first ??= { id, object, created, model };
    assert.deepEqual({ id, object, created, model }, first, 'a chunk of another completion');
    assert.equal(object, 'chat.completion.chunk');
    if (data.choices.length === 0) {
      at('finish');
      const { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens } = data.usage;
      assert.equal(total_tokens, promptTokens + completionTokens);
      told.usage = { promptTokens, completionTokens };
      state = 'usage';
      continue;
    }
    assert.equal(data.usage, usageAsked ? null : undefined);
    assert.equal(data.choices.length, 1);
    const { index, delta, finish_reason: finish } = data.choices[0];
    assert.equal(index, 0);
    if (finish !== null) {
      at('role', 'text', 'calls');
      assert.deepEqual(delta, {});
      told.stop = finish;
      state = 'finish';
    } else if (delta.role !== undefined) {
      at('new');
      assert.deepEqual(delta, { role: 'assistant', content: '' });
      state = 'role';
    } else if (delta.tool_calls === undefined) {
      at('role', 'text');
      text += whole(delta.content);
      state = 'text';
    } else {
      at('role', 'text', 'calls');
      assert.equal(delta.tool_calls.length, 1);
      const [{ index: number, id: callId, type, function: called }] = delta.tool_calls;
      if (number === calls.length) {
        isId(callId);
        assert.deepEqual([type, called.arguments], ['function', '']);
        calls.push({ id: callId, name: called.name, json: '' });
      } else {
        assert.deepEqual([number, callId, called.name], [calls.length - 1, undefined, undefined]);
        calls.at(-1)!.json += whole(called.arguments);
      }
      state = 'calls';
    }
  }
  at('over');
  if (text !== '') told.parts.push({ type: 'text', text });
  for (const { id, name, json } of calls) {
    told.parts.push({ type: 'tool_call', id, name, arguments: JSON.parse(json) });
  }
  return told;
}
