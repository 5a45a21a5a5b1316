import { anthropicMessages } from './anthropic-messages.js';
import { openaiChat } from './openai-chat.js';
import type { Dialect, DialectName } from './types.js';

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
};

/** The dialect that answers POST on this path (query and rollout prefix removed), or null. */
export function dialectForPath(path: string): Dialect | null {
  return Object.values(dialects).find((dialect) => dialect.path === path) ?? null;
}

/** Anthropic's token counter; its body is that of a Messages request. */
export const COUNT_TOKENS_PATH = '/v1/messages/count_tokens';
export const countTokensBody = (promptTokens: number): unknown => ({ input_tokens: promptTokens });

export const MODELS_PATH = '/v1/models';

function modelBody(id: string): Record<string, unknown> {
  return {
    id,
    object: 'model',
    created: 0,
    owned_by: 'treeward',
    type: 'model',
    display_name: id,
    created_at: '1970-01-01T00:00:00Z',
  };
}

/** Answer to GET /v1/models (no id) or /v1/models/<id>, readable by clients of both dialects. Any model name is served. */
export function modelsBody(id?: string): unknown {
  if (id !== undefined) return modelBody(id);
  return {
    object: 'list',
    data: [modelBody('policy')],
    has_more: false,
    first_id: 'policy',
    last_id: 'policy',
  };
}
