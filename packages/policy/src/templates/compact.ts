import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import type { BpeTokenizer } from '../tokenizer/bpe-tokenizer.js';
import { FIRST_BYTE, type Special } from '../tokenizer/vocabulary.js';
import type { ChatTemplate, ParsedReply } from '../types.js';
import { flattenArguments, nestArguments, requiredPaths } from './argument-paths.js';

/** Characters (code points) of a tool result that the policy sees. */
const RESULT_LIMIT = 400;

/** A special id, or text. Kept apart by type, so that a tool result that spells `<eot>` cannot end a turn. */
type Piece = number | string;

/**
 * One append-only token stream, short enough for a policy of a million parameters:
 *
 *   <sys>Bash(command) Read(file_path)<user>instruction<asst><call>Read<arg>file_path<eq>notes.txt<end>
 *   <res>tool result<asst>Done.<eot>
 *
 * System prompts and schemas are dropped; names stay verbatim as the harness offers them. One call per turn.
 */
export class CompactTemplate implements ChatTemplate {
  readonly id = 'compact-v1';
  readonly vocabSize: number;
  readonly stopIds: readonly number[];
  readonly bannedIds: readonly number[];
  readonly generation: Int32Array;
  readonly #tokenizer: BpeTokenizer;
  readonly #id: (name: Special) => number;

  constructor(tokenizer: BpeTokenizer) {
    this.#tokenizer = tokenizer;
    this.#id = (name) => tokenizer.special(name);
    this.vocabSize = tokenizer.vocabSize;
    this.stopIds = (['<end>', '<eot>'] as const).map(this.#id);
    this.bannedIds = (['<pad>', '<sys>', '<user>', '<asst>', '<res>'] as const).map(this.#id);
    this.generation = Int32Array.of(this.#id('<asst>'));
  }

  head(tools: readonly ToolSpec[]): Int32Array {
    const manifest = tools.map((tool) => `${tool.name}(${requiredPaths(tool).join()})`).join(' ');
    return this.#join(this.#id('<sys>'), manifest);
  }

  message(message: Message): Int32Array {
    switch (message.role) {
      case 'system':
        return new Int32Array(0);
      case 'user':
        return this.#join(this.#id('<user>'), message.text);
      case 'tool':
        return this.#join(this.#id('<res>'), firstCharacters(message.text, RESULT_LIMIT));
      case 'assistant':
        return Int32Array.of(...this.generation, ...this.reply(message.parts));
    }
  }

  /** Arguments as {@link flattenArguments} spells them. `parse` gives every leaf back as a string. */
  reply(parts: readonly ReplyPart[]): Int32Array {
    const pieces = parts.flatMap((part): Piece[] => {
      if (part.type === 'text') return [part.text, this.#id('<eot>')];
      const args = flattenArguments(part.arguments).flatMap(([path, value]): Piece[] => [
        this.#id('<arg>'),
        path,
        this.#id('<eq>'),
        value,
      ]);
      return [this.#id('<call>'), part.name, ...args, this.#id('<end>')];
    });
    return this.#join(...pieces);
  }

  /** A call's `id` is empty: ids belong to the wire dialect, whoever renders the reply names them. */
  parse(sampled: Int32Array): ParsedReply {
    const ids = [...sampled];
    const bad = (malformed: string): ParsedReply => ({
      parts: [{ type: 'text', text: this.decode(sampled) }],
      malformed,
    });
    const plain = (part: readonly number[]): boolean =>
      part.every((id) => id >= FIRST_BYTE && id < this.vocabSize);
    const text = (part: readonly number[]): string => this.#tokenizer.decode(part);

    if (ids.length === 0) return bad('no tokens');
    if (ids[0] !== this.#id('<call>')) {
      if (ids.at(-1) !== this.#id('<eot>')) return bad('text that does not end with <eot>');
      const body = ids.slice(0, -1);
      if (!plain(body)) return bad('a special token inside text');
      return { parts: [{ type: 'text', text: text(body) }] };
    }
    if (ids.at(-1) !== this.#id('<end>')) return bad('a call that does not end with <end>');
    const [name = [], ...args] = splitAt(ids.slice(1, -1), this.#id('<arg>'));
    if (name.length === 0) return bad('a call without a name');
    if (!plain(name)) return bad('a special token inside the call name');
    const entries: [string, string][] = [];
    for (const arg of args) {
      const [key = [], value, ...more] = splitAt(arg, this.#id('<eq>'));
      if (!value || more.length > 0) return bad('an argument needs exactly one <eq>');
      if (key.length === 0) return bad('an argument without a name');
      if (!plain(key) || !plain(value)) return bad('a special token inside an argument');
      entries.push([text(key), text(value)]);
    }
    const nested = nestArguments(entries);
    if (!nested) return bad('argument paths that do not form a list');
    return { parts: [{ type: 'tool_call', id: '', name: text(name), arguments: nested }] };
  }

  /** Specials spelled out. */
  decode(ids: Int32Array): string {
    return this.#tokenizer.decode(ids);
  }

  #join(...pieces: readonly Piece[]): Int32Array {
    return Int32Array.from(
      pieces.flatMap((piece) => (typeof piece === 'number' ? [piece] : [...this.#tokenizer.encode(piece)])),
    );
  }
}

function firstCharacters(text: string, limit: number): string {
  // A code point takes at most two code units, so the cut before spreading loses nothing.
  return [...text.slice(0, 2 * limit)].slice(0, limit).join('');
}

function splitAt(ids: readonly number[], separator: number): number[][] {
  const parts: number[][] = [[]];
  for (const id of ids) {
    if (id === separator) parts.push([]);
    else parts.at(-1)!.push(id);
  }
  return parts;
}
