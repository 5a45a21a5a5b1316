import type { IncomingHttpHeaders } from 'node:http';
import { canonicalKey, PrefixIndex, type CanonicalRequest, type Message } from '@treeward/messages';
import type { ParsedReply, Sampled } from '@treeward/policy';
import type { Json, RecordWriter } from '@treeward/telemetry';
import type { GrownPrompt } from './conversation.js';
import type { Outcome } from './exchange.js';

const SECRET_HEADERS = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'x-goog-api-key',
]);

/** Headers as the record keeps them: no secrets, and `key` nowhere, whatever header a harness put it in. */
export function publicHeaders(headers: IncomingHttpHeaders, key: string): Record<string, string> {
  const entries = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || SECRET_HEADERS.has(name)) return [];
    return [[name, (Array.isArray(value) ? value.join(', ') : value).replaceAll(key, '<key>')]];
  });
  return Object.fromEntries(entries);
}

/** Messages, replies and schemas came from JSON or hold nothing that JSON cannot. */
const json = (value: unknown): Json => value as Json;

/** Writes one rollout's calls as deltas: what an earlier call already holds is named, not repeated. */
export class CallRecorder {
  readonly #writer: RecordWriter;
  readonly #index = new PrefixIndex();
  readonly #toolsSeen = new Set<string>();

  constructor(writer: RecordWriter) {
    this.#writer = writer;
  }

  start(
    call: number,
    facts: { headers: Record<string, string>; bodyHash: string; toolsHash: string; time: number },
    request: CanonicalRequest,
    messages: readonly Message[],
  ): void {
    const keys = messages.map(canonicalKey);
    const match = this.#index.find(keys);
    const kept = match?.kept ?? 0;
    this.#index.add(call, keys);
    const first = !this.#toolsSeen.has(facts.toolsHash);
    this.#toolsSeen.add(facts.toolsHash);
    this.#writer.append({
      type: 'call.start',
      call,
      time: facts.time,
      dialect: request.dialect,
      headers: facts.headers,
      bodyHash: facts.bodyHash,
      messages: {
        parent: match?.call ?? null,
        kept,
        appended: messages.slice(kept).map(json),
      },
      tools: { hash: facts.toolsHash, ...(first && { specs: json(request.tools) }) },
      requested: json(request.requested),
      unknown: request.unknown,
    });
  }

  prompt(call: number, grown: GrownPrompt): void {
    this.#writer.append({
      type: 'call.prompt',
      call,
      prompt: {
        parent: grown.parent,
        kept: grown.keptIds,
        appended: this.#writer.tokens(grown.ids.subarray(grown.keptIds)),
        length: grown.ids.length,
        hash: grown.hash,
      },
      graft: { reason: grown.reason, keptMessages: grown.keptMessages },
    });
  }

  /** `returned` is the reply as the harness will send it back, canonicalised. */
  sampled(call: number, sampled: Sampled, reply: ParsedReply, returned: Message): void {
    this.#index.addReply(call, canonicalKey(returned));
    this.#writer.append({
      type: 'call.sampled',
      call,
      time: Date.now(),
      tokens: this.#writer.tokens(sampled.tokens),
      logprobs: this.#writer.logprobs(sampled.logprobs),
      finish: sampled.finish,
      policy: { id: sampled.policy.id, version: sampled.policy.version },
      sampling: json(sampled.sampling),
      reply: {
        parts: reply.parts.map(json),
        ...(reply.malformed !== undefined && { malformed: reply.malformed }),
      },
    });
  }

  end(call: number, outcome: Outcome): void {
    this.#writer.append({ type: 'call.end', call, time: Date.now(), ...outcome });
  }
}
