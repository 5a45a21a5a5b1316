import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { TreewardError } from '@treeward/base';

/** What every engine behind somebody else's HTTP server is told. */
export interface UpstreamOptions {
  /** As the upstream names it. */
  model: string;
  /** Name of the environment variable that holds the key. The key itself is never part of a configuration. Unset: no key. */
  apiKeyEnv?: string;
  /** Milliseconds for one attempt. @default 120000 */
  timeout?: number;
  /** Further attempts after a refused connection, 408, 409, 429 or 5xx, with growing pauses. @default 2 */
  retries?: number;
}

export interface ResolvedUpstream {
  apiKey: string;
  timeout: number;
  maxRetries: number;
}

/** Sent where no key is configured: both clients would otherwise look for one in the environment. */
const NO_KEY = 'none';

/** @throws TreewardError ENGINE_E_CONFIG when the named variable is not set */
export function resolveUpstream(options: UpstreamOptions): ResolvedUpstream {
  const { apiKeyEnv } = options;
  const apiKey = apiKeyEnv === undefined ? NO_KEY : process.env[apiKeyEnv];
  if (!apiKey) {
    throw new TreewardError('ENGINE_E_CONFIG', `engine.apiKeyEnv names ${apiKeyEnv}, which is not set`, {
      hints: [`export ${apiKeyEnv}=…`],
      data: { field: 'engine.apiKeyEnv', variable: apiKeyEnv },
    });
  }
  return { apiKey, timeout: options.timeout ?? 120_000, maxRetries: options.retries ?? 2 };
}

export const isAbort = (error: unknown): boolean =>
  error instanceof OpenAI.APIUserAbortError || error instanceof Anthropic.APIUserAbortError;

/**
 * What went wrong upstream, as one of ours: ENGINE_E_TIMEOUT, ENGINE_E_UNREACHABLE, ENGINE_E_AUTH, ENGINE_E_CONTEXT, ENGINE_E_REQUEST
 * (what was asked is wrong: not worth a retry), ENGINE_E_UPSTREAM (the rest). The key never appears in it.
 */
export function upstreamError(error: unknown, name: string, apiKey: string): unknown {
  if (!(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError)) return error;
  const status = typeof error.status === 'number' ? error.status : null;
  const said = apiKey === NO_KEY ? error.message : error.message.replaceAll(apiKey, '***');
  const fail = (code: string, message: string, hints: string[] = []): TreewardError =>
    new TreewardError(code, `${name}: ${message}`, { hints, data: { status } });
  if (
    error instanceof OpenAI.APIConnectionTimeoutError ||
    error instanceof Anthropic.APIConnectionTimeoutError
  ) {
    return fail('ENGINE_E_TIMEOUT', 'no answer in time', ['raise engine.timeout']);
  }
  if (status === null)
    return fail('ENGINE_E_UNREACHABLE', `cannot be reached (${said})`, ['check engine.baseUrl']);
  if (status === 401 || status === 403)
    return fail('ENGINE_E_AUTH', said, ['check the key in engine.apiKeyEnv']);
  if (/context.{0,20}(length|window)|prompt is too long|maximum.{0,20}tokens/i.test(said)) {
    return fail('ENGINE_E_CONTEXT', said);
  }
  if (status === 400 || status === 404 || status === 413 || status === 422)
    return fail('ENGINE_E_REQUEST', said);
  return fail('ENGINE_E_UPSTREAM', said);
}

/** An answer that does not have what was asked for. */
export function badReply(name: string, field: string, why: string): TreewardError {
  return new TreewardError('ENGINE_E_REPLY', `${name}: ${field} ${why}`, { data: { field } });
}
