import {
  hashTokens,
  type CallEnd,
  type CallPrompt,
  type Identity,
  type Json,
  type RecordEvent,
} from '@treeward/telemetry';
import type { RecordInput } from '../recover.js';

export interface BuiltCall {
  call: number;
  start: number;
  /** When the reply had been sampled; also its first byte, if it was delivered. */
  finish: number;
  prompt: number[];
  /** Null when nothing was sampled. */
  reply: number[] | null;
  logprobs?: 'fine' | 'nan' | 'short' | 'lost';
  /** How the prompt is stored. @default in full */
  from?: { parent: number; kept: number; reason?: CallPrompt['graft']['reason'] };
  /** The request's messages as stored; `kept` of the parent's, then new ones. */
  messages?: { parent: number | null; kept: number; appended: Json[] };
  parts?: Json[];
  /** Names of the tools offered. @default not known */
  tools?: readonly string[];
  identity?: Identity;
  delivery?: CallEnd['delivery'];
  cause?: CallEnd['cause'];
  malformed?: string;
  /** @default 200 */
  status?: number;
  version?: number;
  temperature?: number | null;
  hash?: string;
  /** Leave out events, as a killed gateway does. */
  without?: readonly RecordEvent['type'][];
}

/** Builds the record of one rollout in memory, so that a test states only what it is about. */
export class RecordBuilder {
  readonly events: RecordEvent[] = [
    { type: 'rollout.start', version: 1, rolloutId: 'r1', time: 0, template: 'test', labels: { task: 't' } },
  ];
  #bytes = new Uint8Array(1024);
  #length = 0;

  call(built: BuiltCall): this {
    const { call, start, finish, prompt, reply, from } = built;
    const add = (event: RecordEvent): void => {
      if (!built.without?.includes(event.type)) this.events.push(event);
    };
    add({
      type: 'call.start',
      call,
      time: start,
      dialect: 'test',
      headers: {},
      bodyHash: '',
      messages: built.messages ?? {
        parent: null,
        kept: 0,
        appended: [{ role: 'user', text: prompt.join() }],
      },
      tools: built.tools
        ? { hash: `tools ${built.tools.join()}`, specs: built.tools.map((name) => ({ name })) }
        : { hash: 'not known' },
      ...(built.identity ? { identity: built.identity } : {}),
      requested: {},
      unknown: [],
    });
    add({
      type: 'call.prompt',
      call,
      prompt: {
        parent: from?.parent ?? null,
        kept: from?.kept ?? 0,
        appended: this.#span(Int32Array.from(prompt.slice(from?.kept ?? 0))),
        length: prompt.length,
        hash: built.hash ?? hashTokens(Int32Array.from(prompt)),
      },
      graft: { reason: from?.reason ?? (from ? 'prefix' : 'root'), keptMessages: 0 },
    });
    if (reply) {
      const logprobs = reply.map((_, i) => (built.logprobs === 'nan' && i === 0 ? Number.NaN : -0.5 - i));
      if (built.logprobs === 'short') logprobs.pop();
      const tokens = this.#span(Int32Array.from(reply));
      add({
        type: 'call.sampled',
        call,
        time: finish,
        tokens,
        logprobs:
          built.logprobs === 'lost'
            ? { offset: 2 ** 40, count: reply.length }
            : this.#span(Float32Array.from(logprobs)),
        finish: 'stop',
        policy: { id: 'p', version: built.version ?? 0 },
        sampling: built.temperature === null ? {} : { temperature: built.temperature ?? 1, bannedIds: [9] },
        reply: {
          parts: built.parts ?? [{ type: 'text', text: `${call}:${reply.join()}` }],
          ...(built.malformed === undefined ? {} : { malformed: built.malformed }),
        },
      });
    }
    const delivery = built.delivery ?? 'complete';
    add({
      type: 'call.end',
      call,
      time: finish + 0.25,
      firstByte: delivery === 'none' ? null : finish,
      delivery,
      cause: built.cause ?? 'done',
      status: built.status ?? 200,
    });
    return this;
  }

  end(reward: number | null = 1): this {
    this.events.push(
      { type: 'process.exit', time: 1e6, code: 0, signal: null, timedOut: false },
      { type: 'verifier', time: 1e6 + 1, reward, scores: {} },
      { type: 'rollout.end', time: 1e6 + 2, status: 'completed' },
    );
    return this;
  }

  record(events: RecordEvent[] = this.events): RecordInput {
    const bytes = this.#bytes.subarray(0, this.#length);
    const slice = ({ offset, count }: { offset: number; count: number }): ArrayBuffer | null =>
      offset + 4 * count > bytes.length
        ? null
        : (bytes.slice(offset, offset + 4 * count).buffer as ArrayBuffer);
    return {
      events,
      issues: [],
      tokens: (span) => {
        const buffer = slice(span);
        return buffer && new Int32Array(buffer);
      },
      logprobs: (span) => {
        const buffer = slice(span);
        return buffer && new Float32Array(buffer);
      },
    };
  }

  #span(values: Int32Array | Float32Array): { offset: number; count: number } {
    const offset = this.#length;
    this.#length += values.byteLength;
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(2 * this.#length);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), offset);
    return { offset, count: values.length };
  }
}
