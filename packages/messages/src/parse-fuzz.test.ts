import { TreewardError } from '@treeward/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { acceptsAnthropic, anthropicSchema } from './anthropic-parse.js';
import { canonicalKey, toolManifestHash } from './canonical.js';
import { dialects } from './dialects.js';
import { acceptsOpenaiChat, openaiChatSchema } from './openai-parse.js';
import { acceptsOpenaiResponses, openaiResponsesSchema } from './responses-parse.js';
import type { CanonicalRequest, Dialect } from './types.js';

const all = Object.values(dialects).map((dialect) => [dialect.name, dialect] as const);

const junk = fc.jsonValue({ maxDepth: 3 });
/** Mostly what belongs there, now and then anything. */
const mostly = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 6, arbitrary: value }, { weight: 1, arbitrary: junk });
const words = (list: string): fc.Arbitrary<unknown> => mostly(fc.constantFrom(...list.split(' ')));
const object = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> =>
  fc.record(fields, { requiredKeys: [] });
const text = mostly(fc.string({ unit: 'binary' }));

const { content } = fc.letrec<{ content: unknown; block: unknown }>((tie) => ({
  content: mostly(fc.oneof({ maxDepth: 2 }, fc.string(), fc.array(tie('block'), { maxLength: 3 }))),
  block: mostly(
    object({
      type: words(
        'text input_text output_text refusal thinking redacted_thinking tool_use tool_result tool_reference ' +
          'image image_url input_image document file reasoning',
      ),
      text,
      refusal: text,
      id: text,
      name: text,
      tool_name: text,
      tool_use_id: text,
      is_error: mostly(fc.boolean()),
      input: junk,
      content: tie('content'),
    }),
  ),
}));
const called = object({ name: text, arguments: mostly(fc.json()) });
const message = object({
  role: words('system developer user assistant tool function'),
  content,
  tool_calls: mostly(fc.array(object({ id: text, function: called }), { maxLength: 3 })),
  function_call: called,
  tool_call_id: text,
});
const item = object({
  type: words(
    'message function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call ' +
      'local_shell_call_output reasoning item_reference web_search_call compaction',
  ),
  role: words('system developer user assistant'),
  content,
  call_id: text,
  id: text,
  name: text,
  namespace: text,
  arguments: mostly(fc.json()),
  input: text,
  action: junk,
  output: content,
});
const { tools } = fc.letrec<{ tools: unknown; tool: unknown }>((tie) => ({
  tools: mostly(fc.array(tie('tool'), { maxLength: 3 })),
  tool: object({
    type: words('function custom namespace web_search local_shell'),
    name: text,
    description: text,
    parameters: junk,
    input_schema: junk,
    function: object({ name: text, description: text, parameters: junk }),
    format: object({ definition: text }),
    tools: fc.oneof({ maxDepth: 2 }, junk, tie('tools')),
  }),
}));
const body = object({
  model: text,
  messages: mostly(fc.array(message, { maxLength: 4 })),
  input: mostly(fc.oneof(fc.string(), fc.array(item, { maxLength: 5 }))),
  system: content,
  instructions: text,
  tools,
  stream: mostly(fc.boolean()),
  stream_options: object({ include_usage: mostly(fc.boolean()) }),
  temperature: mostly(fc.double()),
  max_tokens: mostly(fc.nat()),
  stop: mostly(fc.oneof(fc.string(), fc.array(fc.string()))),
  stop_sequences: mostly(fc.array(fc.string())),
  previous_response_id: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: junk }),
  n: fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: junk }),
  novel: junk,
});

/** A request, or null after a refusal; anything else fails the test. */
function parsed(dialect: Dialect, sent: unknown): CanonicalRequest | null {
  try {
    return dialect.parse(sent);
  } catch (error) {
    if (!TreewardError.isInstance(error)) throw error;
    expect(error.code).toMatch(/^DIALECT_E_[A-Z]+$/);
    expect(error.message.startsWith(`${String(error.data['field'])}: `)).toBe(true);
    return null;
  }
}

/** What follows must be able to match, hash and record it. */
function expectUsable(request: CanonicalRequest): void {
  for (const one of request.messages) expect(typeof canonicalKey(one)).toBe('string');
  expect(toolManifestHash(request.tools)).toMatch(/^[0-9a-f]{64}$/);
  expect(request.unknown).toEqual([...new Set(request.unknown)].sort());
  for (const { name, description } of request.tools) {
    expect([typeof name, typeof description]).toEqual(['string', 'string']);
  }
  for (const one of request.messages) {
    if (one.role === 'assistant') {
      for (const part of one.parts) {
        if (part.type === 'text') expect(typeof part.text).toBe('string');
        else expect([typeof part.id, typeof part.name]).toEqual(['string', 'string']);
      }
    } else {
      expect(typeof one.text).toBe('string');
    }
  }
}

describe.each([
  ['Messages', anthropicSchema, acceptsAnthropic],
  ['Chat Completions', openaiChatSchema, acceptsOpenaiChat],
  ['Responses', openaiResponsesSchema, acceptsOpenaiResponses],
] as const)('what is checked by hand of %s', (_, schema, accepts) => {
  it('is what its schema says', () => {
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(body, (sent) => {
        const read = JSON.parse(JSON.stringify(sent)) as Record<string, unknown>;
        const accepted = accepts(read);
        expect(accepted).toBe(schema.safeParse(read).success);
        seen[accepted ? 'accepted' : 'refused']++;
      }),
      { numRuns: 3000, seed: 7 },
    );
    expect(seen.accepted).toBeGreaterThan(100);
    expect(seen.refused).toBeGreaterThan(100);
  });

  it('holds for numbers that JSON can say and no engine take', () => {
    for (const field of ['temperature', 'max_tokens', 'max_output_tokens', 'top_p']) {
      const read = JSON.parse(`{"messages":[],"input":"","${field}":1e999}`) as Record<string, unknown>;
      expect([field, accepts(read)]).toEqual([field, schema.safeParse(read).success]);
    }
  });
});

describe.each(all)('a %s parser', (_, dialect) => {
  it('takes any JSON or refuses it by name', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (sent) => {
        const request = parsed(dialect, sent);
        if (request) expectUsable(request);
      }),
    );
  });

  it('takes what nearly is a request or refuses it by name, and often takes it', () => {
    let taken = 0;
    fc.assert(
      fc.property(body, (sent) => {
        const request = parsed(dialect, JSON.parse(JSON.stringify(sent)));
        if (!request) return;
        taken++;
        expectUsable(request);
      }),
      { numRuns: 2000, seed: 7 },
    );
    expect(taken).toBeGreaterThan(100);
  });

  it('names every field that it does not know and takes the rest as if it were not there', () => {
    const known = { model: 'm', messages: [{ role: 'user', content: 'hi' }], input: 'hi' };
    const plain = dialect.parse(known);
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ minLength: 1 }).map((key) => `x_${key}`),
          junk,
        ),
        (novel) => {
          const request = dialect.parse({ ...known, ...novel });
          expect(request).toEqual({
            ...plain,
            unknown: [...new Set([...plain.unknown, ...Object.keys(novel)])].sort(),
          });
        },
      ),
    );
  });

  it('refuses JSON that is nested deeper than what comes after could follow', () => {
    const deep = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
    const known = { messages: [{ role: 'user', content: 'hi' }], input: 'hi' };
    expect(parsed(dialect, { ...known, x_deep: deep(200_000) })).toBeNull();
    const tool = { type: 'function', name: 'f', function: { name: 'f', parameters: { a: deep(300) } } };
    expectUsable(dialect.parse({ ...known, tools: [{ ...tool, parameters: { a: deep(300) } }] }));
  });

  it('keeps arguments that it cannot follow as they stand', () => {
    const json = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const sent = {
      messages: [{ role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: json } }] }],
      input: [{ type: 'function_call', call_id: '1', name: 'f', arguments: json }],
    };
    const [turn] = dialect.parse(sent).messages;
    const parts =
      dialect.name === 'anthropic-messages'
        ? []
        : [{ type: 'tool_call', id: '1', name: 'f', arguments: { _raw: json } }];
    expect(turn).toEqual({ role: 'assistant', parts });
  });
});
