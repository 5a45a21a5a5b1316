import { PrefixIndex, type Message, type PrefixMatch, type ToolSpec } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';
import { extendTokenHash, finishTokenHash, type CallPrompt } from '@treeward/telemetry';
import type { EncodedText } from './encoded-text.js';
import { manifestHash, messageKey } from './message-key.js';
import { extendPath, pathAt, pathIds, type TokenPath } from './token-path.js';

/** A prompt and how it grew out of an earlier call's tokens. */
export interface GrownPrompt {
  ids: Int32Array;
  /** The call whose ids (prompt ++ sampled) are kept, and how many of them. */
  parent: number | null;
  keptIds: number;
  graft: CallPrompt['graft'];
  hash: string;
  /** For `begin`: what matched, the keys behind it, and the ids without the generation mark. */
  match: PrefixMatch | null;
  newKeys: readonly string[];
  path: TokenPath;
}

interface CallTokens {
  /** Head and messages. */
  prompt: TokenPath;
  /** Those, the generation mark and the sampled ids. */
  whole: TokenPath | null;
}

interface Shown {
  message: Message;
  /** Index in the request. */
  position: number;
  key: string;
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
  readonly #graft: boolean;
  readonly #index = new PrefixIndex();
  readonly #calls = new Map<number, CallTokens>();
  readonly #replyKeys = new Set<string>();
  /** By key, whether the template shows the message: known texts need not be encoded again to find that out. */
  readonly #shows = new Map<string, boolean>();

  /** @param options.graft false: never keep ids of an earlier call. @default true */
  constructor(template: ChatTemplate, encoded: EncodedText, { graft = true } = {}) {
    this.#template = template;
    this.#encoded = encoded;
    this.#graft = graft;
  }

  /**
   * Nothing is remembered for matching until `begin`. Waits where texts are encoded on another thread: whoever wants
   * calls to be matched in their order lets each one `begin` before the next one grows.
   */
  async grow(
    tools: readonly ToolSpec[],
    messages: readonly Message[],
    hash: string = manifestHash(tools),
  ): Promise<GrownPrompt> {
    const head = await this.#encoded.head(tools, hash);
    const shown = await this.#shown(messages);
    const keys = [head.key, ...shown.map(({ key }) => key)];
    const match = this.#graft ? this.#index.find(keys) : null;
    const keptShown = match ? match.kept - HEAD_KEYS : 0;
    const tail = shown.slice(keptShown);
    const keptMessages = keptShown === 0 ? 0 : (tail[0]?.position ?? messages.length);
    const newKeys = keys.slice(match?.kept ?? 0);
    const { generation } = this.#template;

    if (match && match.at === 'messages' && newKeys.length === 0) {
      const path = this.#calls.get(match.call)!.prompt;
      const ids = pathIds(path, generation);
      const graft = { reason: 'same-prompt' as const, keptMessages };
      return { ...this.#hashed(path), ids, parent: match.call, keptIds: ids.length, graft, match, newKeys };
    }

    const reason = this.#reason(match?.at === 'reply', keptShown, tail);
    const kept = match ? this.#pathOf(match) : null;
    const pieces = await settled(tail.map(({ message, key }) => this.#encoded.message(message, key)));
    const path = pieces.reduce(extendPath, kept ?? extendPath(null, head.ids));
    const grafted = match !== null && reason !== 'root';
    return {
      ...this.#hashed(path),
      ids: pathIds(path, generation),
      parent: grafted ? match.call : null,
      keptIds: grafted ? kept!.end : 0,
      graft: {
        reason,
        keptMessages,
        ...(reason === 'rewritten' && {
          rewrite: { message: tail[0]!.position, call: keptShown > 0 ? match!.call : null },
        }),
      },
      match,
      newKeys,
    };
  }

  /** Later calls may now be matched against this one. */
  begin(call: number, { match, newKeys, path }: GrownPrompt): void {
    this.#index.add(call, newKeys, match ?? undefined);
    this.#calls.set(call, { prompt: path, whole: null });
  }

  /** `message` is the reply in the form in which the harness will send it back, canonicalised. */
  reply(call: number, message: Message, sampled: Int32Array): void {
    const tokens = this.#calls.get(call)!;
    const key = messageKey(message);
    const ids = new Int32Array(this.#template.generation.length + sampled.length);
    ids.set(this.#template.generation);
    ids.set(sampled, this.#template.generation.length);
    tokens.whole = extendPath(tokens.prompt, ids);
    this.#replyKeys.add(key);
    this.#index.addReply(call, key);
  }

  async #shown(messages: readonly Message[]): Promise<Shown[]> {
    const all = messages.map((message, position) => ({ message, position, key: messageKey(message) }));
    const unknown = all.filter(({ message, key }) => message.role !== 'assistant' && !this.#shows.has(key));
    const pieces = await settled(unknown.map(({ message, key }) => this.#encoded.message(message, key)));
    unknown.forEach(({ key }, i) => this.#shows.set(key, pieces[i]!.length > 0));
    return all.filter(({ message, key }) => message.role === 'assistant' || this.#shows.get(key));
  }

  #pathOf({ call, kept }: PrefixMatch): TokenPath {
    const { prompt, whole } = this.#calls.get(call)!;
    return pathAt(whole ?? prompt, kept);
  }

  #hashed(path: TokenPath): Pick<GrownPrompt, 'path' | 'hash'> {
    return { path, hash: finishTokenHash(extendTokenHash(path.hash, this.#template.generation)) };
  }

  #reason(afterReply: boolean, keptShown: number, tail: readonly Shown[]): CallPrompt['graft']['reason'] {
    const turns = tail.filter(({ message }) => message.role === 'assistant');
    if (keptShown === 0) return turns.length > 0 && this.#calls.size > 0 ? 'rewritten' : 'root';
    // Behind a reply a harness may put turns of its own; one that we sampled stands there only if its history changed.
    if (afterReply) return turns.some(({ key }) => this.#replyKeys.has(key)) ? 'rewritten' : 'reply';
    return turns.length > 0 ? 'rewritten' : 'prefix';
  }
}

/** Waits only where there is something to wait for. */
function settled<T>(values: readonly (T | Promise<T>)[]): readonly T[] | Promise<readonly T[]> {
  return values.some((value) => value instanceof Promise) ? Promise.all(values) : (values as readonly T[]);
}
