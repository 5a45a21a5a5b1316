import assert from 'node:assert/strict';
import { isId, whole, type Heard, type Told } from './sse-events.js';

/* eslint-disable @typescript-eslint/no-explicit-any */

/** The life cycle of Responses. */
export function readResponses(heard: readonly Heard[]): Told {
  const told: Told = { parts: [], stop: null, usage: null, error: null, beats: -1 };
  type State =
    'new' | 'created' | 'between' | 'item' | 'part' | 'text' | 'parted' | 'call' | 'called' | 'over';
  let state: State = 'new';
  let first: any = null;
  let item: any = null;
  let pieces = '';
  const items: any[] = [];
  const at = (...legal: State[]): void => assert.ok(legal.includes(state), `in state ${state}`);
  const sameResponse = (response: any, status: string): void => {
    const { id, object, created_at, model } = response;
    first ??= { id, object, created_at, model };
    assert.deepEqual({ id, object, created_at, model }, first, 'an event of another response');
    assert.deepEqual([object, response.status], ['response', status]);
  };
  const ofItem = (data: any): void =>
    assert.deepEqual([data.item_id, data.output_index], [item.id, items.length]);
  heard.forEach(({ event, data }, number) => {
    assert.equal(event, data?.type, 'the event is not named after its type');
    assert.equal(data.sequence_number, number, 'a number is missing');
    switch (data.type) {
      case 'response.created':
        at('new');
        sameResponse(data.response, 'in_progress');
        state = 'created';
        break;
      case 'response.in_progress':
        at('created', 'between');
        assert.equal(items.length, 0);
        sameResponse(data.response, 'in_progress');
        assert.deepEqual([data.response.output, data.response.usage], [[], null]);
        told.beats++;
        state = 'between';
        break;
      case 'response.output_item.added':
        at('between');
        ({ item } = data);
        isId(item.id);
        assert.deepEqual([data.output_index, item.status], [items.length, 'in_progress']);
        pieces = '';
        if (item.type === 'message') assert.deepEqual([item.role, item.content], ['assistant', []]);
        else assert.equal(item.type === 'function_call' ? item.arguments : item.input, '');
        state = item.type === 'message' ? 'item' : 'call';
        break;
      case 'response.content_part.added':
        at('item');
        ofItem(data);
        assert.deepEqual([data.content_index, data.part.type, data.part.text], [0, 'output_text', '']);
        state = 'part';
        break;
      case 'response.output_text.delta':
        at('part');
        ofItem(data);
        pieces += whole(data.delta);
        break;
      case 'response.output_text.done':
        at('part');
        ofItem(data);
        assert.equal(data.text, pieces);
        state = 'text';
        break;
      case 'response.content_part.done':
        at('text');
        ofItem(data);
        assert.deepEqual([data.part.type, data.part.text], ['output_text', pieces]);
        state = 'parted';
        break;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        at('call');
        ofItem(data);
        pieces += whole(data.delta);
        break;
      case 'response.function_call_arguments.done':
        at('call');
        ofItem(data);
        assert.deepEqual([item.type, data.arguments, data.name], ['function_call', pieces, item.name]);
        state = 'called';
        break;
      case 'response.custom_tool_call_input.done':
        at('call');
        ofItem(data);
        assert.deepEqual([item.type, data.input], ['custom_tool_call', pieces]);
        state = 'called';
        break;
      case 'response.output_item.done': {
        at('parted', 'called');
        const done = data.item;
        assert.deepEqual(
          [data.output_index, done.id, done.type, done.status],
          [items.length, item.id, item.type, 'completed'],
        );
        items.push(done);
        if (done.type === 'message') {
          assert.deepEqual([done.content.length, done.content[0].text], [1, pieces]);
          told.parts.push({ type: 'text', text: pieces });
        } else {
          isId(done.call_id);
          assert.deepEqual([done.call_id, done.name], [item.call_id, item.name]);
          assert.equal(done.type === 'function_call' ? done.arguments : done.input, pieces);
          const args = done.type === 'function_call' ? JSON.parse(pieces) : { input: pieces };
          told.parts.push({ type: 'tool_call', id: done.call_id, name: done.name, arguments: args });
        }
        state = 'between';
        break;
      }
      case 'response.completed':
      case 'response.incomplete': {
        at('between');
        const status = data.type.slice('response.'.length);
        sameResponse(data.response, status);
        assert.deepEqual(data.response.output, items);
        const called = items.some(({ type }) => type !== 'message');
        told.stop = status === 'incomplete' ? 'length' : called ? 'tool_calls' : 'stop';
        assert.equal(
          data.response.incomplete_details?.reason,
          told.stop === 'length' ? 'max_output_tokens' : undefined,
        );
        const {
          input_tokens: promptTokens,
          output_tokens: completionTokens,
          total_tokens,
        } = data.response.usage;
        assert.equal(total_tokens, promptTokens + completionTokens);
        told.usage = { promptTokens, completionTokens };
        state = 'over';
        break;
      }
      case 'response.failed':
        at('between');
        sameResponse(data.response, 'failed');
        told.error = data.response.error;
        state = 'over';
        break;
      default:
        assert.fail(`unknown event ${event}`);
    }
  });
  at('over');
  return told;
}
