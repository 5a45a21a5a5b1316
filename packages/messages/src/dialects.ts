import { anthropicMessages } from './anthropic-messages.js';
import { openaiChat } from './openai-chat.js';
import { openaiResponses } from './openai-responses.js';
import type { Dialect, DialectName } from './types.js';

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

export const MODELS_PATH = '/v1/models';

/** The dialect that answers POST on this path (query and rollout prefix removed), or null. */
export function dialectForPath(path: string): Dialect | null {
  return Object.values(dialects).find((dialect) => dialect.path === path) ?? null;
}

/** The dialect that counts the tokens of what is sent to this path, or null. */
export function countingDialectForPath(path: string): Dialect | null {
  return Object.values(dialects).find(({ counting }) => counting?.path === path) ?? null;
}

/** Whose shapes a client expects at a URL that belongs to no dialect alone. Only Anthropic's clients send a version. */
export function dialectOfClient(url: string, headers: Readonly<Record<string, unknown>>): Dialect {
  const path = url.replace(/\/*(\?.*)?$/, '');
  const named = Object.values(dialects).find((dialect) => path.endsWith(dialect.path));
  return named ?? (headers['anthropic-version'] === undefined ? openaiChat : anthropicMessages);
}
