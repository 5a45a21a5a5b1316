import { now, openaiError, openaiModels, type OpenaiErrorBody } from './openai-common.js';
import { parseOpenaiResponses } from './responses-parse.js';
import { textPieces } from './sse.js';
import type { Dialect, Reply, ReplyMeta, ReplyPart, ServerEvent, ToolCallPart, Usage } from './types.js';

/** Events that `opening` gives: `response.created` and `response.in_progress`. */
const OPENING = 2;

type Json = Record<string, unknown>;
type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed';

/** Gives events their type, as name and as field, and consecutive numbers from `first`. */
function numbered(events: readonly ({ type: string } & Json)[], first: number): ServerEvent[] {
  return events.map(({ type, ...data }, index) => ({
    event: type,
    data: JSON.stringify({ type, sequence_number: first + index, ...data }),
  }));
}

const usage = ({ promptTokens, completionTokens }: Usage): Json => ({
  input_tokens: promptTokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: completionTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: promptTokens + completionTokens,
});

function response(meta: Omit<ReplyMeta, 'promptTokens'>, status: Status, more: Json = {}): Json {
  return {
    id: meta.id,
    object: 'response',
    created_at: meta.created ?? now(),
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    model: meta.model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: null,
    ...more,
  };
}

/** The finished response: the body of a plain answer, and what the last event of a stream carries. */
function finished(reply: Reply): Json {
  const cut = reply.stop === 'length';
  return response(reply, cut ? 'incomplete' : 'completed', {
    ...(cut && { incomplete_details: { reason: 'max_output_tokens' } }),
    output: reply.parts.map((part, index) => doneItem(reply, part, index)),
    usage: usage(reply.usage),
  });
}

/** A part as an output item; `done` false: as it is added, still empty. */
function item(reply: Reply, part: ReplyPart, index: number, done: boolean): Json {
  const id = (prefix: string): string => `${prefix}_${reply.id.replace(/^resp_/, '')}_${index}`;
  const status = done ? 'completed' : 'in_progress';
  if (part.type === 'text') {
    const content = done ? [outputText(part.text)] : [];
    return { id: id('msg'), type: 'message', status, role: 'assistant', content };
  }
  const form = reply.form?.calls?.get(part.name);
  const called = { status, call_id: part.id, name: part.name };
  if (form?.type === 'custom') {
    return { id: id('ctc'), type: 'custom_tool_call', ...called, input: done ? customInput(part) : '' };
  }
  return {
    id: id('fc'),
    type: 'function_call',
    ...called,
    ...(form && { namespace: form.namespace, name: form.name }),
    arguments: done ? JSON.stringify(part.arguments) : '',
  };
}

const doneItem = (reply: Reply, part: ReplyPart, index: number): Json => item(reply, part, index, true);

const outputText = (text: string): Json => ({ type: 'output_text', text, annotations: [], logprobs: [] });

/** What the policy called with is given on as it is, even where it is not the one text that was asked for. */
function customInput({ arguments: args }: ToolCallPart): string {
  const { input, ...others } = args;
  return typeof input === 'string' && Object.keys(others).length === 0 ? input : JSON.stringify(args);
}

function itemEvents(reply: Reply, part: ReplyPart, output_index: number): ({ type: string } & Json)[] {
  const added = item(reply, part, output_index, false);
  const done = doneItem(reply, part, output_index);
  const at = { item_id: added['id'], output_index };
  const life = (inner: ({ type: string } & Json)[]): ({ type: string } & Json)[] => [
    { type: 'response.output_item.added', output_index, item: added },
    ...inner,
    { type: 'response.output_item.done', output_index, item: done },
  ];
  if (part.type === 'text') {
    const within = { ...at, content_index: 0 };
    const type = 'response.output_text';
    return life([
      { type: 'response.content_part.added', ...within, part: outputText('') },
      ...textPieces(part.text).map((delta) => ({ type: `${type}.delta`, ...within, delta, logprobs: [] })),
      { type: `${type}.done`, ...within, text: part.text, logprobs: [] },
      { type: 'response.content_part.done', ...within, part: outputText(part.text) },
    ]);
  }
  if (done['type'] === 'custom_tool_call') {
    const input = customInput(part);
    const type = 'response.custom_tool_call_input';
    return life([
      ...textPieces(input).map((delta) => ({ type: `${type}.delta`, ...at, delta })),
      { type: `${type}.done`, ...at, input },
    ]);
  }
  const args = JSON.stringify(part.arguments);
  const type = 'response.function_call_arguments';
  return life([
    ...textPieces(args).map((delta) => ({ type: `${type}.delta`, ...at, delta })),
    { type: `${type}.done`, ...at, name: done['name'], arguments: args },
  ]);
}

/** OpenAI Responses, without server-side state: every request carries its whole conversation. */
export const openaiResponses: Dialect = {
  name: 'openai-responses',
  path: '/v1/responses',
  // With its code, the one server fault that codex does not ask again for five times five.
  overloadedStatus: 503,
  // Its clients begin compaction at a failed response in the stream, not at a status.
  contextExceededInStream: true,
  counting: {
    path: '/v1/responses/input_tokens',
    body: (promptTokens) => ({ object: 'response.input_tokens', input_tokens: promptTokens }),
  },
  parse: parseOpenaiResponses,
  render: finished,

  opening: (meta) =>
    numbered(
      ['response.created', 'response.in_progress'].map((type) => ({
        type,
        response: response(meta, 'in_progress'),
      })),
      0,
    ),

  // A comment would not do: clients count the time between events.
  keepAlive: (meta, beat) =>
    numbered([{ type: 'response.in_progress', response: response(meta, 'in_progress') }], OPENING + beat)[0]!,

  events: (reply, beats = 0) =>
    numbered(
      [
        ...reply.parts.flatMap((part, index) => itemEvents(reply, part, index)),
        {
          type: reply.stop === 'length' ? 'response.incomplete' : 'response.completed',
          response: finished(reply),
        },
      ],
      OPENING + beats,
    ),

  error: openaiError,
  contextExceeded: (promptTokens, maximum) =>
    openaiError(
      400,
      'Your input exceeds the context window of this model. Please adjust your input and try again. ' +
        `(${promptTokens} tokens, the window has ${maximum})`,
      'context_length_exceeded',
    ),
  errorEvents(body, meta, beats) {
    const { code, type, message } = (body as OpenaiErrorBody).error;
    const error = { code: code ?? (type === 'server_error' ? type : 'invalid_prompt'), message };
    return numbered(
      [{ type: 'response.failed', response: response(meta, 'failed', { error }) }],
      OPENING + beats,
    );
  },
  models: openaiModels,
};
