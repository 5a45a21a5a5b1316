import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import type { JudgeAnswer, JudgeModel, JudgeQuestion } from './model.js';

export interface HttpJudgeOptions {
  dialect: 'openai' | 'anthropic';
  model: string;
  /** Without a path behind `/v1`, e.g. `https://host/v1`. @default the vendor's own */
  baseUrl?: string;
  /** Name of the variable that holds the key; the key itself is never part of a configuration. Unset: no key is sent. */
  apiKeyEnv?: string;
  /** Milliseconds of one attempt. @default 180000 */
  timeoutMs?: number;
  /** Further attempts after a refused connection, 408, 429 or 5xx. @default 3 */
  retries?: number;
  /** Milliseconds before the second attempt; doubles each time. @default 1000 */
  pauseMs?: number;
}

const BASE = { openai: 'https://api.openai.com/v1', anthropic: 'https://api.anthropic.com/v1' };

const openaiReply = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string().nullish() }) })).min(1),
  usage: z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish(),
});
const anthropicReply = z.looseObject({
  content: z.array(z.looseObject({ type: z.string(), text: z.string().nullish() })),
  usage: z.looseObject({ input_tokens: z.number(), output_tokens: z.number() }).nullish(),
});

/** A judge behind an OpenAI-compatible or Anthropic endpoint: one plain request per question, no tools, no memory. */
export class HttpJudge implements JudgeModel {
  readonly name: string;
  readonly #options: Required<Omit<HttpJudgeOptions, 'apiKeyEnv'>>;
  readonly #key: string | null;

  /** @throws TreewardError JUDGE_E_CONFIG when the named variable is not set */
  constructor(options: HttpJudgeOptions) {
    const { apiKeyEnv, ...rest } = options;
    const key = apiKeyEnv === undefined ? null : process.env[apiKeyEnv];
    if (key === undefined || key === '') {
      throw new TreewardError(
        'JUDGE_E_CONFIG',
        `the judge's key is looked for in ${apiKeyEnv}, which is not set`,
        {
          hints: [`export ${apiKeyEnv}=…`],
          data: { variable: apiKeyEnv },
        },
      );
    }
    this.#key = key;
    this.#options = {
      baseUrl: BASE[options.dialect],
      timeoutMs: 180_000,
      retries: 3,
      pauseMs: 1000,
      ...rest,
    };
    this.#options.baseUrl = this.#options.baseUrl.replace(/\/$/, '');
    this.name = `${options.dialect}:${options.model}@${this.#options.baseUrl}`;
  }

  async ask(question: JudgeQuestion, signal?: AbortSignal): Promise<JudgeAnswer> {
    const { retries, pauseMs } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(question, signal);
      } catch (error) {
        const again = TreewardError.isInstance(error) && error.data['again'] === true;
        if (!again || attempt >= retries) throw error;
        await sleep(pauseMs * 2 ** attempt, undefined, signal ? { signal } : {});
      }
    }
  }

  async #once(question: JudgeQuestion, signal?: AbortSignal): Promise<JudgeAnswer> {
    const { dialect, baseUrl, timeoutMs } = this.#options;
    const limit = AbortSignal.timeout(timeoutMs);
    let response: Response;
    let body: string;
    try {
      response = await fetch(`${baseUrl}${dialect === 'openai' ? '/chat/completions' : '/messages'}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...this.#headers() },
        body: JSON.stringify(this.#body(question)),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      body = await response.text();
    } catch (cause) {
      signal?.throwIfAborted();
      if (limit.aborted) throw this.#fail('JUDGE_E_TIMEOUT', `no answer within ${timeoutMs} ms`, true);
      const why = (cause as Error & { cause?: Error }).cause?.message ?? (cause as Error).message;
      throw this.#fail('JUDGE_E_UNREACHABLE', `cannot be reached (${why})`, true);
    }
    if (!response.ok) {
      const { status } = response;
      const said = body.slice(0, 300).replaceAll(this.#key ?? '\0', '***');
      if (status === 401 || status === 403)
        throw this.#fail('JUDGE_E_AUTH', `refused the key (${status})`, false);
      throw this.#fail(
        'JUDGE_E_HTTP',
        `status ${status}: ${said}`,
        status === 408 || status === 429 || status >= 500,
      );
    }
    return this.#read(body);
  }

  #headers(): Record<string, string> {
    if (this.#options.dialect === 'openai')
      return this.#key === null ? {} : { authorization: `Bearer ${this.#key}` };
    return { 'anthropic-version': '2023-06-01', ...(this.#key !== null && { 'x-api-key': this.#key }) };
  }

  #body({ system, user, temperature, maxTokens }: JudgeQuestion): unknown {
    const { dialect, model } = this.#options;
    const common = { model, temperature, max_tokens: maxTokens };
    return dialect === 'openai'
      ? {
          ...common,
          messages: [
            { role: 'system', content: system },
            { role: 'user', content: user },
          ],
        }
      : { ...common, system, messages: [{ role: 'user', content: user }] };
  }

  #read(body: string): JudgeAnswer {
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      throw this.#fail('JUDGE_E_REPLY', `the answer is not JSON: ${body.slice(0, 120)}`, true);
    }
    if (this.#options.dialect === 'openai') {
      const parsed = openaiReply.safeParse(value);
      const text = parsed.data?.choices[0]?.message.content;
      if (!parsed.success || typeof text !== 'string')
        throw this.#fail('JUDGE_E_REPLY', 'the answer has no text', true);
      const { usage } = parsed.data;
      return { text, inputTokens: usage?.prompt_tokens ?? 0, outputTokens: usage?.completion_tokens ?? 0 };
    }
    const parsed = anthropicReply.safeParse(value);
    if (!parsed.success) throw this.#fail('JUDGE_E_REPLY', 'the answer has no text', true);
    const { content, usage } = parsed.data;
    const text = content.flatMap((part) => (part.type === 'text' ? [part.text ?? ''] : [])).join('');
    return { text, inputTokens: usage?.input_tokens ?? 0, outputTokens: usage?.output_tokens ?? 0 };
  }

  #fail(code: string, what: string, again: boolean): TreewardError {
    return new TreewardError(code, `judge ${this.name}: ${what}`, { data: { again } });
  }
}
