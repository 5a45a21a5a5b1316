import assert from 'node:assert/strict';
import { isId, whole, type Heard, type Told } from './sse-events.js';

/** The life cycle of Anthropic Messages. */
export function readMessages(heard: readonly Heard[]): Told {
  const told: Told = { parts: [], stop: null, usage: null, error: null, beats: -1 };
  let state: 'new' | 'between' | 'text' | 'tool' | 'said' | 'over' = 'new';
  let index = -1;
  let json = '';
  const at = (...legal: (typeof state)[]): void => assert.ok(legal.includes(state), `in state ${state}`);
  for (const { event, data } of heard) {
    assert.equal(event, data?.type, 'the event is not named after its type');
    switch (data.type) {
      case 'message_start': {
        at('new');
        const { message } = data;
        isId(message.id);
        assert.deepEqual(
          [message.type, message.role, message.content, message.stop_reason, message.stop_sequence],
          ['message', 'assistant', [], null, null],
        );
        assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens === 0);
        state = 'between';
        break;
      }
      case 'ping':
        at('between', 'text', 'tool');
        if (index < 0) told.beats++; // the first one belongs to the opening
        break;
      case 'content_block_start': {
        at('between');
        assert.equal(data.index, ++index);
        const { type, ...block } = data.content_block;
        if (type === 'text') {
          assert.deepEqual(block, { text: '' });
          told.parts.push({ type: 'text', text: '' });
          state = 'text';
        } else {
          assert.equal(type, 'tool_use');
          isId(block.id);
          assert.deepEqual(block.input, {});
          told.parts.push({ type: 'tool_call', id: block.id, name: block.name, arguments: {} });
          json = '';
          state = 'tool';
        }
        break;
      }
      case 'content_block_delta': {
        at('text', 'tool');
        assert.equal(data.index, index);
        const part = told.parts[index]!;
        if (part.type === 'text') part.text += whole(data.delta.text);
        else json += whole(data.delta.partial_json);
        assert.equal(data.delta.type, part.type === 'text' ? 'text_delta' : 'input_json_delta');
        break;
      }
      case 'content_block_stop': {
        at('text', 'tool');
        assert.equal(data.index, index);
        const part = told.parts[index]!;
        if (part.type === 'tool_call') part.arguments = JSON.parse(json);
        state = 'between';
        break;
      }
      case 'message_delta': {
        at('between');
        const reasons = { end_turn: 'stop', tool_use: 'tool_calls', max_tokens: 'length' } as const;
        told.stop = reasons[data.delta.stop_reason as keyof typeof reasons];
        assert.ok(told.stop, 'no stop reason');
        const { input_tokens: promptTokens, output_tokens: completionTokens } = data.usage;
        told.usage = { promptTokens, completionTokens };
        state = 'said';
        break;
      }
      case 'message_stop':
        at('said');
        state = 'over';
        break;
      case 'error':
        at('between');
        told.error = { code: data.error.type, message: data.error.message };
        state = 'over';
        break;
      default:
        assert.fail(`unknown event ${event}`);
    }
  }
  at('over');
  return told;
}
