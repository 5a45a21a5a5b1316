import { PrefixIndex, type Message, type PrefixMatch, type ToolSpec } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';
import { extendTokenHash, finishTokenHash, type CallPrompt } from '@treeward/telemetry';
import type { EncodedText } from './encoded-text.js';
import { manifestHash, messageKey } from './message-key.js';
import { ShownKeys } from './shown-keys.js';
import { extendPath, pathAt, pathIds, type KnownIds, type TokenPath } from './token-path.js';

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
  readonly #shown = new ShownKeys();
  /** The last prompt's: the next one mostly goes on from it. */
  #last: KnownIds | null = null;

  /** @param options.graft false: never keep ids of an earlier call. @default true */
  constructor(template: ChatTemplate, encoded: EncodedText, { graft = true } = {}) {
    this.#template = template;
    this.#encoded = encoded;
    this.#graft = graft;
  }

  /**
   * Nothing is remembered for matching until `begin`. Waits where texts are encoded on another thread: whoever wants
   * calls to be matched in their order lets each one `begin` before the next one grows.
   * @param messageKeys of `messages`, where they are known
   */
  async grow(
    tools: readonly ToolSpec[],
    messages: readonly Message[],
    toolsHash: string = manifestHash(tools),
    messageKeys: readonly string[] = messages.map(messageKey),
  ): Promise<GrownPrompt> {
    const found = this.#encoded.head(tools, toolsHash);
    const head = found instanceof Promise ? await found : found;
    const unknown = this.#learn(messages, messageKeys);
    if (unknown) await unknown;
    const { keys, positions } = this.#shown.of(head.key, messages, messageKeys, this.#shows);
    const match = this.#graft ? this.#index.find(keys) : null;
    const keptShown = match ? match.kept - HEAD_KEYS : 0;
    const tail = positions
      .slice(keptShown)
      .map((position) => ({ message: messages[position]!, position, key: messageKeys[position]! }));
    const keptMessages = keptShown === 0 ? 0 : (tail[0]?.position ?? messages.length);
    const newKeys = keys.slice(match?.kept ?? 0);

    if (match && match.at === 'messages' && newKeys.length === 0) {
      const path = this.#calls.get(match.call)!.prompt;
      const ids = this.#idsOf(path);
      const graft = { reason: 'same-prompt' as const, keptMessages };
      const hash = this.#hashOf(path);
      return { path, hash, ids, parent: match.call, keptIds: ids.length, graft, match, newKeys };
    }

    const reason = this.#reason(match?.at === 'reply', keptShown, tail);
    const kept = match ? this.#pathOf(match) : null;
    const encoding = settled(tail.map(({ message, key }) => this.#encoded.message(message, key)));
    const pieces = encoding instanceof Promise ? await encoding : encoding;
    const path = pieces.reduce(extendPath, kept ?? extendPath(null, head.ids));
    const grafted = match !== null && reason !== 'root';
    const graft: CallPrompt['graft'] = { reason, keptMessages };
    if (reason === 'rewritten') {
      graft.rewrite = { message: tail[0]!.position, call: keptShown > 0 ? match!.call : null };
    }
    return {
      path,
      hash: this.#hashOf(path),
      ids: this.#idsOf(path),
      parent: grafted ? match.call : null,
      keptIds: grafted ? kept!.end : 0,
      graft,
      match,
      newKeys,
    };
  }

  /** Later calls may now be matched against this one. */
  begin(call: number, { match, newKeys, path }: GrownPrompt): void {
    this.#index.add(call, newKeys, match ?? undefined);
    this.#calls.set(call, { prompt: path, whole: null });
  }

  /**
   * `message` is the reply in the form in which the harness will send it back, canonicalised.
   * @param key of `message`, where it is known
   */
  reply(call: number, message: Message, sampled: Int32Array, key: string = messageKey(message)): void {
    const tokens = this.#calls.get(call)!;
    const ids = new Int32Array(this.#template.generation.length + sampled.length);
    ids.set(this.#template.generation);
    ids.set(sampled, this.#template.generation.length);
    tokens.whole = extendPath(tokens.prompt, ids);
    this.#replyKeys.add(key);
    this.#index.addReply(call, key);
  }

  /** Finds out of each message that is new whether the template shows it; null when that took no waiting. */
  #learn(messages: readonly Message[], keys: readonly string[]): Promise<unknown> | null {
    let waiting: Promise<void>[] | null = null;
    for (let i = this.#shown.known(keys); i < messages.length; i++) {
      const key = keys[i]!;
      if (messages[i]!.role === 'assistant' || this.#shows.has(key)) continue;
      const piece = this.#encoded.message(messages[i]!, key);
      if (piece instanceof Promise) {
        (waiting ??= []).push(piece.then((ids) => void this.#shows.set(key, ids.length > 0)));
      } else {
        this.#shows.set(key, piece.length > 0);
      }
    }
    return waiting && Promise.all(waiting);
  }

  #pathOf({ call, kept }: PrefixMatch): TokenPath {
    const { prompt, whole } = this.#calls.get(call)!;
    return pathAt(whole ?? prompt, kept);
  }

  /** With the generation mark behind them. */
  #idsOf(path: TokenPath): Int32Array {
    const ids = pathIds(path, this.#template.generation, this.#last);
    this.#last = { path, ids };
    return ids;
  }

  #hashOf(path: TokenPath): string {
    return finishTokenHash(extendTokenHash(path.hash, this.#template.generation));
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
