import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';

const ROLE = { system: 1, user: 2, assistant: 3, tool: 4 } as const;
const GENERATION = Int32Array.of(5);
const END = 6;
const FIRST_WORD = 16;
const WORD_SPACE = 2 ** 20;

/**
 * One id per word: as cheap as a template can be, and append-only like the real ones. A sampled reply uses ids from the
 * half of the vocabulary that rendering never uses, so that text encoded again never equals what was sampled.
 */
export class WordTemplate implements ChatTemplate {
  readonly id = 'words';
  readonly vocabSize = FIRST_WORD + 2 * WORD_SPACE;
  readonly stopIds = [END];
  readonly bannedIds = [];
  readonly generation = GENERATION;
  readonly #showsSystem: boolean;

  constructor(showsSystem: boolean) {
    this.#showsSystem = showsSystem;
  }

  head(tools: readonly ToolSpec[]): Int32Array {
    return Int32Array.from(tools, ({ name }) => wordId(name));
  }

  message(message: Message): Int32Array {
    if (message.role === 'system' && !this.#showsSystem) return new Int32Array(0);
    const text = message.role === 'assistant' ? partsText(message.parts) : message.text;
    return Int32Array.from([ROLE[message.role], ...wordIds(text), END]);
  }

  reply(parts: readonly ReplyPart[]): Int32Array {
    return Int32Array.from([...wordIds(partsText(parts)).map((id) => id + WORD_SPACE), END]);
  }

  parse(): never {
    throw new Error('the simulator knows what its policy said: nothing is parsed');
  }

  decode(ids: Int32Array): string {
    return ids.join(' ');
  }
}

const partsText = (parts: readonly ReplyPart[]): string =>
  parts
    .map((part) =>
      part.type === 'text' ? part.text : `<call> ${part.name} ${Object.values(part.arguments).join(' ')}`,
    )
    .join(' ');

const wordIds = (text: string): number[] => text.split(/\s+/).filter(Boolean).map(wordId);

/** FNV-1a; two words with one id do no harm here. */
function wordId(word: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
  return FIRST_WORD + ((hash >>> 0) % WORD_SPACE);
}
