import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import { CompactTemplate, type BpeTokenizer, type ChatTemplate, type ParsedReply } from '@treeward/policy';

/** How a reply that is more than a text begins. */
const PARTS = '[{"';

/**
 * The compact stream for scripted policies that call several tools in one reply and give lists as arguments: such a reply is the
 * JSON of its parts. What begins like that and is no JSON is malformed: this is how a script samples garbage.
 */
export class TurnsTemplate implements ChatTemplate {
  readonly id = 'turns';
  readonly vocabSize: number;
  readonly stopIds: readonly number[];
  readonly bannedIds: readonly number[];
  readonly generation: Int32Array;
  readonly #compact: CompactTemplate;

  constructor(tokenizer: BpeTokenizer) {
    this.#compact = new CompactTemplate(tokenizer);
    this.vocabSize = this.#compact.vocabSize;
    this.stopIds = [tokenizer.special('<eot>')];
    this.bannedIds = this.#compact.bannedIds;
    this.generation = this.#compact.generation;
  }

  head(tools: readonly ToolSpec[]): Int32Array {
    return this.#compact.head(tools);
  }

  message(message: Message): Int32Array {
    if (message.role !== 'assistant') return this.#compact.message(message);
    return Int32Array.of(...this.generation, ...this.reply(message.parts));
  }

  reply(parts: readonly ReplyPart[]): Int32Array {
    const [only, ...more] = parts;
    const text = only?.type === 'text' && more.length === 0 ? only.text : JSON.stringify(parts.map(nameless));
    return this.#compact.reply([{ type: 'text', text }]);
  }

  parse(sampled: Int32Array): ParsedReply {
    const plain = this.#compact.parse(sampled);
    const [part] = plain.parts;
    if (plain.malformed !== undefined || part?.type !== 'text' || !part.text.startsWith(PARTS)) return plain;
    try {
      return { parts: JSON.parse(part.text) as ReplyPart[] };
    } catch {
      return { parts: [part], malformed: 'parts that are no JSON' };
    }
  }

  decode(ids: Int32Array): string {
    return this.#compact.decode(ids);
  }
}

/** Ids belong to the wire, not to what was sampled. */
const nameless = (part: ReplyPart): ReplyPart => (part.type === 'tool_call' ? { ...part, id: '' } : part);
