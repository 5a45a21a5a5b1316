import type { IncomingHttpHeaders } from 'node:http';
import type { CanonicalRequest, Message } from '@treeward/messages';
import type { EngineFacts } from '@treeward/policy';
import type { Identity, Json, RecordWriter } from '@treeward/telemetry';
import type { GrownPrompt } from './conversation.js';
import type { Outcome } from './exchange.js';
import { messageKey, MessageKeys, sameMessage } from './message-key.js';
import { MessageLog } from './message-log.js';
import type { Turn } from './turn.js';

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
  const shown: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || SECRET_HEADERS.has(name)) continue;
    const text = Array.isArray(value) ? value.join(', ') : value;
    shown[name] = text.includes(key) ? text.replaceAll(key, '<key>') : text;
  }
  return shown;
}

/** What is known of a call when its request is complete. */
export interface Arrived {
  request: CanonicalRequest;
  /** Canonical. */
  messages: readonly Message[];
  /** Of `messages`, where they are known. */
  keys?: readonly string[];
  headers: Record<string, string>;
  identity: Identity | null;
  bodyHash: string;
  toolsHash: string;
  time: number;
}

/** Replies and schemas came from JSON or hold nothing that JSON cannot. */
const json = (value: unknown): Json => value as Json;

/** What a recorder needs of a `RecordWriter`. */
export type RecordSink = Pick<RecordWriter, 'append' | 'tokens' | 'logprobs'>;

/** Writes one rollout's calls as deltas: what an earlier call already holds is named, not repeated. */
export class CallRecorder {
  readonly #writer: RecordSink;
  readonly #canonical = new MessageLog();
  /** Of what the harness said before it was made canonical; null as long as the two never differed. */
  #raw: MessageLog | null = null;
  readonly #rawKeys = new MessageKeys();
  readonly #toolsSeen = new Set<string>();
  #engineKnown = false;

  constructor(writer: RecordSink) {
    this.#writer = writer;
  }

  /** What answers; once. */
  engine(facts: EngineFacts): void {
    if (this.#engineKnown) return;
    this.#engineKnown = true;
    this.#writer.append({ type: 'engine', time: Date.now(), facts: json(facts) });
  }

  start(call: number, arrived: Arrived): void {
    const { request, messages, identity, toolsHash } = arrived;
    const keys = arrived.keys ?? messages.map(messageKey);
    const untouched =
      messages.length === request.messages.length &&
      messages.every((message, i) => message === request.messages[i]);
    const rawKeys = untouched ? keys : this.#rawKeys.of(request.messages);
    const same = untouched || (rawKeys.length === keys.length && rawKeys.every((key, i) => key === keys[i]));
    if (!same) this.#raw ??= this.#canonical.fork();
    const canonical = this.#canonical.add(call, messages, keys);
    const raw = this.#raw?.add(call, request.messages, rawKeys);
    const first = !this.#toolsSeen.has(toolsHash);
    this.#toolsSeen.add(toolsHash);
    this.#writer.append({
      type: 'call.start',
      call,
      time: arrived.time,
      dialect: request.dialect,
      headers: arrived.headers,
      bodyHash: arrived.bodyHash,
      ...(identity && { identity }),
      messages: canonical,
      ...(!same && { raw: raw! }),
      tools: { hash: toolsHash, ...(first && { specs: json(request.tools) }) },
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
      graft: grown.graft,
    });
  }

  /** `returned` is the reply as the harness will send it back, canonicalised. Gives its key. */
  sampled(call: number, turn: Turn, returned: Message): string {
    const key = messageKey(returned);
    const said = { role: 'assistant' as const, parts: turn.parts };
    const saidKey = sameMessage(said, returned) ? key : messageKey(said);
    if (saidKey !== key) this.#raw ??= this.#canonical.fork();
    this.#canonical.reply(call, key);
    this.#raw?.reply(call, saidKey);
    this.#writer.append({
      type: 'call.sampled',
      call,
      time: Date.now(),
      tokens: this.#writer.tokens(turn.tokens),
      logprobs: this.#writer.logprobs(turn.logprobs),
      finish: turn.finish,
      policy: { id: turn.policy.id, version: turn.policy.version },
      sampling: json(turn.sampling),
      ...(turn.surrogate && { ids: 'surrogate' as const }),
      reply: {
        parts: turn.parts.map(json),
        ...(turn.malformed !== undefined && { malformed: turn.malformed }),
      },
    });
    return key;
  }

  end(call: number, outcome: Outcome): void {
    const { firstByte, delivery, cause, status, sent } = outcome;
    const time = Date.now();
    this.#writer.append({
      type: 'call.end',
      call,
      time,
      firstByte,
      delivery,
      cause,
      status,
      ...(sent && { sent }),
    });
  }
}
