import { createHash } from 'node:crypto';
import { TreewardError } from '@treeward/base';
import { CallRecorder, Conversation, EncodedText, inlineEncoder } from '@treeward/gateway';
import { adapters } from '@treeward/harness-adapters';
import {
  dialectForPath,
  toolManifestHash,
  type Dialect,
  type Message,
  type ReplyPart,
} from '@treeward/messages';
import type { CallEnd } from '@treeward/telemetry';
import type { Behaviour } from '../simulate/behaviour.js';
import type { MemoryRecord } from './memory-record.js';
import { requestBody, type WireRequest } from './request-body.js';
import { WordTemplate } from './word-template.js';

const PATHS: Readonly<Record<Behaviour['dialect'], string>> = {
  'anthropic-messages': '/v1/messages',
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
};

const POLICY = { id: 'scripted', version: 0 };
const SAMPLING = { temperature: 1, topP: 1, topK: 0, maxTokens: 4096, bannedIds: [] };

/** A reply that the scripted policy gives. */
export interface ScriptedReply {
  parts: ReplyPart[];
  malformed?: string;
}

/**
 * One rollout's endpoint without its socket: the real dialect parser, canonicaliser, matcher and recorder, fed with request
 * bodies and a scripted policy. What it leaves out is what a socket adds: waiting and losing, which the simulator decides.
 */
export class GatewaySession {
  readonly #record: MemoryRecord;
  readonly #rolloutId: string;
  readonly #behaviour: Behaviour;
  readonly #dialect: Dialect;
  readonly #template: WordTemplate;
  readonly #conversation: Conversation;
  readonly #recorder: CallRecorder;
  readonly #adapter: (typeof adapters)[number] | undefined;
  #calls = 0;

  constructor(rolloutId: string, behaviour: Behaviour, record: MemoryRecord) {
    const dialect = dialectForPath(PATHS[behaviour.dialect]);
    if (!dialect) {
      throw new TreewardError('BEHAVIOUR_E_DIALECT', `no dialect answers ${PATHS[behaviour.dialect]}`, {
        data: { behaviour: behaviour.name },
      });
    }
    this.#record = record;
    this.#rolloutId = rolloutId;
    this.#behaviour = behaviour;
    this.#dialect = dialect;
    this.#template = new WordTemplate(behaviour.showsSystem);
    this.#conversation = new Conversation(this.#template, new EncodedText(inlineEncoder(this.#template)));
    this.#recorder = new CallRecorder(record);
    this.#adapter = adapters.find(({ name }) => name === behaviour.harness);
  }

  /** Does the record say which agent sends a request? */
  get identifiesAgents(): boolean {
    const { identity } = this.#behaviour;
    return this.#adapter?.identify !== undefined && (identity === 'full' || identity === 'lineage');
  }

  /** A complete request; its call number. */
  async arrive(wire: WireRequest, headers: Record<string, string>, time: number): Promise<number> {
    const body = requestBody(this.#behaviour.dialect, wire, this.#behaviour.quirks);
    const request = this.#dialect.parse(body);
    const messages = this.#canonicalise(request.messages);
    const toolsHash = toolManifestHash(request.tools);
    const identity = this.#adapter?.identify?.({ headers, messages: request.messages, tools: request.tools });
    const call = this.#calls++;
    const bodyHash = createHash('sha256').update(JSON.stringify(body)).digest('hex');
    this.#recorder.start(call, {
      request,
      messages,
      headers,
      identity: identity ?? null,
      bodyHash,
      toolsHash,
      time,
    });
    const grown = await this.#conversation.grow(request.tools, messages, toolsHash);
    this.#recorder.prompt(call, grown);
    this.#conversation.begin(call, grown);
    return call;
  }

  /** The policy's reply is complete: its ids, and the reply with call ids as the harness gets it. */
  sampled(call: number, reply: ScriptedReply): { tokens: Int32Array; parts: ReplyPart[] } {
    const parts = reply.parts.map((part, index): ReplyPart =>
      part.type === 'tool_call' ? { ...part, id: `call_${this.#rolloutId}_${call}_${index}` } : part,
    );
    const tokens = this.#template.reply(parts);
    const returned = this.#canonicalise([{ role: 'assistant', parts }])[0]!;
    this.#recorder.sampled(
      call,
      {
        parts,
        ...(reply.malformed !== undefined && { malformed: reply.malformed }),
        tokens,
        logprobs: Float32Array.from(tokens, (id) => -1 / (1 + (id % 7))),
        surrogate: false,
        finish: 'stop',
        policy: POLICY,
        sampling: SAMPLING,
        usage: { promptTokens: 0, completionTokens: tokens.length },
      },
      returned,
    );
    this.#conversation.reply(call, returned, tokens);
    return { tokens, parts };
  }

  end(call: number, outcome: Omit<CallEnd, 'type' | 'call' | 'time'>): void {
    this.#record.append({ type: 'call.end', call, time: 0, ...outcome });
  }

  #canonicalise(messages: readonly Message[]): Message[] {
    return this.#adapter ? this.#adapter.canonicalise(messages) : [...messages];
  }
}
