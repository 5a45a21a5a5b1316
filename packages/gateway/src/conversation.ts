import { canonicalKey, PrefixIndex, type Message, type ToolSpec } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';
import {
  EMPTY_TOKEN_HASH,
  extendTokenHash,
  finishTokenHash,
  type CallPrompt,
  type TokenHashState,
} from '@treeward/telemetry';
import type { EncodedText } from './encoded-text.js';

/** A prompt and how it grew out of an earlier call's tokens. */
export interface GrownPrompt {
  ids: Int32Array;
  /** The call whose ids (prompt ++ sampled) are kept, and how many of them. */
  parent: number | null;
  keptIds: number;
  /** Leading messages of the request that lie in the kept ids. */
  keptMessages: number;
  reason: CallPrompt['graft']['reason'];
  hash: string;
  /** For `begin`: matching keys, where each key's tokens end in `ids`, hash state of the whole. */
  keys: readonly string[];
  ends: readonly number[];
  hashState: TokenHashState;
}

interface CallTokens {
  prompt: Int32Array;
  ends: number[];
  hash: TokenHashState;
  sampled: Int32Array | null;
}

/** The first key of every list stands for the tool manifest, the rest for messages. */
const HEAD_KEYS = 1;

/**
 * The token side of one rollout: grows each prompt out of the ids of the earlier call that it continues. Sampled ids
 * are never encoded again where the message prefix holds; a history that the harness rewrote is rendered from its text
 * behind the last message that still agrees. Messages that the template does not show take no part in matching, so a
 * re-rendered system prompt breaks no graft under a template that drops it.
 */
export class Conversation {
  readonly #template: ChatTemplate;
  readonly #encoded: EncodedText;
  readonly #index = new PrefixIndex();
  readonly #calls = new Map<number, CallTokens>();
  readonly #replyKeys = new Set<string>();

  constructor(template: ChatTemplate, encoded: EncodedText) {
    this.#template = template;
    this.#encoded = encoded;
  }

  /** Pure: nothing is remembered until `begin`. */
  grow(tools: readonly ToolSpec[], messages: readonly Message[], manifestHash?: string): GrownPrompt {
    const head = this.#encoded.head(tools, manifestHash);
    const shown = messages
      .map((message, position) => ({ message, position, key: canonicalKey(message) }))
      .filter(
        ({ message, key }) => message.role === 'assistant' || this.#encoded.message(message, key).length > 0,
      );
    const keys = [head.key, ...shown.map(({ key }) => key)];

    const match = this.#index.find(keys);
    const keptShown = match ? match.kept - HEAD_KEYS : 0;
    const tail = shown.slice(keptShown);
    const keptMessages = keptShown === 0 ? 0 : (tail[0]?.position ?? messages.length);
    const earlier = match ? this.#calls.get(match.call)! : null;

    if (match && earlier && match.at === 'messages' && match.kept === keys.length) {
      return {
        ids: earlier.prompt,
        parent: match.call,
        keptIds: earlier.prompt.length,
        keptMessages,
        reason: 'same-prompt',
        hash: finishTokenHash(earlier.hash),
        keys,
        ends: earlier.ends.slice(0, keys.length),
        hashState: earlier.hash,
      };
    }

    const reason = this.#reason(match?.at === 'reply', keptShown, tail);
    const graft = match && earlier && reason !== 'root' ? { match, earlier } : null;
    const ends = graft ? graft.earlier.ends.slice(0, graft.match.kept) : [head.ids.length];
    const keptIds = graft ? ends.at(-1)! : 0;
    const pieces = graft ? keptPieces(graft.earlier, keptIds) : [head.ids];
    let length = ends.at(-1)!;
    for (const { message, key } of tail) {
      const piece = this.#encoded.message(message, key);
      pieces.push(piece);
      ends.push((length += piece.length));
    }
    pieces.push(this.#template.generation);
    const ids = concat(pieces);
    const whole = graft?.earlier.sampled && keptIds === tokenCount(graft.earlier);
    const hashState = whole
      ? extendTokenHash(extendTokenHash(graft.earlier.hash, graft.earlier.sampled!), ids.subarray(keptIds))
      : extendTokenHash(EMPTY_TOKEN_HASH, ids);
    return {
      ids,
      parent: graft ? graft.match.call : null,
      keptIds,
      keptMessages,
      reason,
      hash: finishTokenHash(hashState),
      keys,
      ends,
      hashState,
    };
  }

  /** Later calls may now be matched against this one. */
  begin(call: number, grown: GrownPrompt): void {
    this.#index.add(call, grown.keys);
    this.#calls.set(call, {
      prompt: grown.ids,
      ends: [...grown.ends],
      hash: grown.hashState,
      sampled: null,
    });
  }

  /** `message` is the reply in the form in which the harness will send it back, canonicalised. */
  reply(call: number, message: Message, sampled: Int32Array): void {
    const tokens = this.#calls.get(call)!;
    const key = canonicalKey(message);
    tokens.sampled = sampled;
    tokens.ends.push(tokens.prompt.length + sampled.length);
    this.#replyKeys.add(key);
    this.#index.addReply(call, key);
  }

  #reason(
    afterReply: boolean,
    keptShown: number,
    tail: readonly { message: Message; key: string }[],
  ): GrownPrompt['reason'] {
    const turns = tail.filter(({ message }) => message.role === 'assistant');
    if (keptShown === 0) return turns.length > 0 && this.#calls.size > 0 ? 'rewritten' : 'root';
    // Behind a reply a harness may put turns of its own; one that we sampled stands there only if its history changed.
    if (afterReply) return turns.some(({ key }) => this.#replyKeys.has(key)) ? 'rewritten' : 'reply';
    return turns.length > 0 ? 'rewritten' : 'prefix';
  }
}

const tokenCount = (call: CallTokens): number => call.prompt.length + (call.sampled?.length ?? 0);

/** The first `count` ids of prompt ++ sampled. */
function keptPieces(call: CallTokens, count: number): Int32Array[] {
  if (count <= call.prompt.length) return [call.prompt.subarray(0, count)];
  return [call.prompt, call.sampled!.subarray(0, count - call.prompt.length)];
}

function concat(pieces: readonly Int32Array[]): Int32Array {
  const out = new Int32Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}
