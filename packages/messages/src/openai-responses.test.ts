import { TreewardError } from '@treeward/base';
import { describe, expect, it } from 'vitest';
import { openaiResponses } from './openai-responses.js';
import type { Reply } from './types.js';

const parse = (body: Record<string, unknown>) => openaiResponses.parse(body);
const messagesOf = (input: unknown) => parse({ input }).messages;

function refusal(body: Record<string, unknown>): string {
  try {
    parse(body);
  } catch (error) {
    if (TreewardError.isInstance(error)) return `${error.code} ${error.message}`;
  }
  return 'not refused';
}

describe('Responses, parsed', () => {
  it('takes a string or items, instructions first', () => {
    const items = [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }];
    expect(parse({ instructions: 'be good', input: 'hi' })).toEqual(
      parse({ instructions: 'be good', input: items }),
    );
    expect(parse({ instructions: 'be good', input: 'hi' }).messages).toEqual([
      { role: 'system', text: 'be good' },
      { role: 'user', text: 'hi' },
    ]);
  });

  it('puts the items of one turn together again and leaves out what the model kept to itself', () => {
    const { messages, unknown } = parse({
      input: [
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'd' }] },
        { type: 'message', role: 'user', content: 'go' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
        {
          type: 'message',
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'a' },
            { type: 'refusal', refusal: 'b' },
          ],
        },
        { type: 'function_call', call_id: 'c1', name: 'shell', arguments: '{"command":["ls"]}' },
        { type: 'reasoning', summary: [] },
        { type: 'custom_tool_call', call_id: 'c2', name: 'apply_patch', input: '*** Begin' },
        { type: 'local_shell_call', id: 'l1', call_id: 'c3', action: { type: 'exec', command: ['pwd'] } },
        { type: 'function_call_output', call_id: 'c1', output: 'out' },
        { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'done' }] },
        { type: 'local_shell_call_output', id: 'c3', output: '/' },
        { role: 'system', content: 'late' },
        { type: 'item_reference', id: 'msg_9' },
        { type: 'web_search_call', id: 'ws_1' },
        { role: 'assistant', content: 'end' },
      ],
    });
    expect(messages).toEqual([
      { role: 'system', text: 'd' },
      { role: 'user', text: 'go' },
      {
        role: 'assistant',
        parts: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
          { type: 'tool_call', id: 'c1', name: 'shell', arguments: { command: ['ls'] } },
          { type: 'tool_call', id: 'c2', name: 'apply_patch', arguments: { input: '*** Begin' } },
          {
            type: 'tool_call',
            id: 'c3',
            name: 'local_shell',
            arguments: { type: 'exec', command: ['pwd'] },
          },
        ],
      },
      { role: 'tool', callId: 'c1', text: 'out' },
      { role: 'tool', callId: 'c2', text: 'done' },
      { role: 'tool', callId: 'c3', text: '/' },
      { role: 'system', text: 'late' },
      { role: 'assistant', parts: [{ type: 'text', text: 'end' }] },
    ]);
    expect(unknown).toEqual(['item item_reference', 'item web_search_call']);
  });

  it('keeps a result that is no content as JSON', () => {
    expect(messagesOf([{ type: 'function_call_output', call_id: 'c', output: { ok: true } }])).toEqual([
      { role: 'tool', callId: 'c', text: '{"ok":true}' },
    ]);
  });

  it('flattens tools, tells how the special ones are called, and names those of a server', () => {
    const parameters = { type: 'object', properties: { x: {} } };
    const { tools, form, unknown } = parse({
      input: 'hi',
      tools: [
        { type: 'function', name: 'shell', description: 'runs', strict: false, parameters },
        { type: 'function', name: 'now', parameters: null },
        {
          type: 'custom',
          name: 'apply_patch',
          description: 'patches',
          format: { type: 'grammar', definition: 'start: x' },
        },
        { type: 'namespace', name: 'mcp__files', tools: [{ type: 'function', name: 'read', parameters }] },
        { type: 'web_search' },
        { type: 'local_shell' },
        {},
      ],
    });
    expect(tools.map(({ name }) => name)).toEqual(['shell', 'now', 'apply_patch', 'mcp__files__read']);
    expect(tools[0]).toEqual({ name: 'shell', description: 'runs', parameters });
    expect(tools[1]!.parameters).toEqual({ type: 'object', properties: {} });
    expect(tools[2]!.description).toBe('patches\n\nThe input follows this grammar:\nstart: x');
    expect([...form.calls!]).toEqual([
      ['apply_patch', { type: 'custom' }],
      ['mcp__files__read', { type: 'namespaced', namespace: 'mcp__files', name: 'read' }],
    ]);
    expect(unknown).toEqual(['tool local_shell', 'tool web_search', 'tool without type']);
  });

  it('takes what codex sends beside the conversation without a word', () => {
    const { unknown, requested, stream } = parse({
      model: 'policy',
      input: [],
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      reasoning: { effort: 'medium', summary: 'auto' },
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'x',
      text: { verbosity: 'low' },
      service_tier: 'auto',
      client_metadata: {},
      previous_response_id: null,
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 77,
    });
    expect({ unknown, requested, stream }).toEqual({
      unknown: [],
      requested: { temperature: 0.5, topP: 0.9, maxTokens: 77, effort: 'medium' },
      stream: true,
    });
  });

  it('refuses what it could only have kept, and what is no text, by name', () => {
    expect(refusal({ input: 'hi', previous_response_id: 'resp_1' })).toMatch(
      /^DIALECT_E_STATE previous_response_id: no responses are kept here/,
    );
    expect(refusal({ input: 'hi', conversation: 'conv_1' })).toMatch(/^DIALECT_E_STATE conversation: /);
    expect(refusal({ input: 'hi', prompt: { id: 'p' } })).toMatch(/^DIALECT_E_STATE prompt: /);
    expect(refusal({ input: 'hi', background: true })).toMatch(/^DIALECT_E_STATE background: /);
    const image = [
      { type: 'input_text', text: 'see' },
      { type: 'input_image', image_url: 'data:' },
    ];
    expect(refusal({ input: [{ role: 'user', content: image }] })).toMatch(
      /^DIALECT_E_IMAGE input\.0\.content\.1: /,
    );
    expect(refusal({ input: [{ type: 'function_call_output', call_id: 'c', output: image }] })).toMatch(
      /^DIALECT_E_IMAGE input\.0\.output\.1: /,
    );
    expect(refusal({ input: [{ role: 'user', content: [{ type: 'input_file' }] }] })).toMatch(
      /^DIALECT_E_FILE input\.0\.content\.0: .*input_file/,
    );
    expect(refusal({})).toMatch(/^DIALECT_E_BODY input: /);
    expect(refusal({ input: [{ role: 'robot', content: '' }] })).toMatch(/input\.0\.role: .*robot/);
  });
});

describe('Responses, rendered', () => {
  const reply: Reply = {
    id: 'resp_9',
    model: 'policy',
    created: 5,
    stop: 'tool_calls',
    usage: { promptTokens: 3, completionTokens: 4 },
    form: parse({
      input: '',
      tools: [
        { type: 'custom', name: 'patch' },
        { type: 'namespace', name: 'mcp__f', tools: [{ type: 'function', name: 'read' }] },
      ],
    }).form,
    parts: [
      { type: 'text', text: 'hm' },
      { type: 'tool_call', id: 'c1', name: 'patch', arguments: { input: 'x\n' } },
      { type: 'tool_call', id: 'c2', name: 'patch', arguments: { input: 'x', more: 1 } },
      { type: 'tool_call', id: 'c3', name: 'mcp__f__read', arguments: { path: 'a' } },
    ],
  };

  it('gives every call the form that its tool was offered in', () => {
    expect(openaiResponses.render(reply)).toMatchObject({
      id: 'resp_9',
      created_at: 5,
      status: 'completed',
      output: [
        { id: 'msg_9_0', type: 'message', content: [{ type: 'output_text', text: 'hm', annotations: [] }] },
        { id: 'ctc_9_1', type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: 'x\n' },
        { type: 'custom_tool_call', call_id: 'c2', input: '{"input":"x","more":1}' },
        {
          id: 'fc_9_3',
          type: 'function_call',
          call_id: 'c3',
          namespace: 'mcp__f',
          name: 'read',
          arguments: '{"path":"a"}',
        },
      ],
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    });
  });

  it('reads such calls back as the turn that they were', () => {
    const { output } = openaiResponses.render({ ...reply, parts: reply.parts.filter((_, i) => i !== 2) }) as {
      output: unknown[];
    };
    expect(messagesOf(output)).toEqual([{ role: 'assistant', parts: reply.parts.filter((_, i) => i !== 2) }]);
  });

  it('numbers events across signs of life', () => {
    const meta = { id: 'resp_9', model: 'policy', promptTokens: 3 };
    const events = [
      ...openaiResponses.opening(meta),
      openaiResponses.keepAlive(meta, 0),
      openaiResponses.keepAlive(meta, 1),
      ...openaiResponses.errorEvents(openaiResponses.contextExceeded(600, 512), meta, 2),
    ].map((event) => JSON.parse((event as { data: string }).data) as Record<string, unknown>);
    expect(events.map(({ sequence_number, type }) => [sequence_number, type])).toEqual([
      [0, 'response.created'],
      [1, 'response.in_progress'],
      [2, 'response.in_progress'],
      [3, 'response.in_progress'],
      [4, 'response.failed'],
    ]);
    expect(events[4]).toMatchObject({ response: { error: { code: 'context_length_exceeded' } } });
  });
});
