import { createHash } from 'node:crypto';
import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import { TreewardError } from '@treeward/base';
import type { ChatTemplate, ParsedReply } from '../types.js';
import { hermes, llama3Json, type CallFormat, type ReplyPiece } from './huggingface/call-format.js';
import { ChatPieces, unstable } from './huggingface/chat-pieces.js';
import { ControlText } from './huggingface/control-text.js';
import { PlainTokenizer } from './huggingface/plain-tokenizer.js';
import { PROBES } from './huggingface/stability.js';
import { readTokenizerFiles } from './huggingface/tokenizer-files.js';

export interface HuggingFaceTemplateOptions {
  /** A jinja file to use instead of the directory's own template. */
  chatTemplate?: string;
  /**
   * `strict`: refuse a template that does not render every probe conversation by appending. `stable`: use its pieces all the same
   * where they can be told apart, and list in `deviations` where the whole that they make differs from the template's.
   * @default 'strict'
   */
  variant?: 'strict' | 'stable';
  /** Variables for the template (`enable_thinking: false`). */
  variables?: Readonly<Record<string, unknown>>;
}

/** Ends of text that models know beside the one that their template uses. */
const OTHER_ENDS = ['<|endoftext|>', '<|end_of_text|>', '<|eom_id|>'];

/** Llama 3.1 moves its tools into the first user message unless told otherwise, and some of its relatives print today's date. */
const VARIABLES = { tools_in_user_message: false, date_string: '26 Jul 2024' };

/**
 * A Hugging Face chat template (Qwen3 and Llama 3 families) as append-only pieces. Text from messages never encodes to one of the
 * tokenizer's added tokens, whatever it spells.
 */
export class HuggingFaceTemplate implements ChatTemplate {
  readonly id: string;
  readonly vocabSize: number;
  readonly stopIds: readonly number[];
  readonly bannedIds: readonly number[];
  readonly generation: Int32Array;
  /** Names of the probe conversations whose tokens differ from those of the template's own rendering. Empty when strict. */
  readonly deviations: readonly string[];
  readonly #tokenizer: PlainTokenizer;
  readonly #pieces: ChatPieces;
  readonly #format: CallFormat;
  /** Marks of the format that are control tokens, by id. */
  readonly #marks: ReadonlyMap<number, string>;

  /**
   * @param directory holds `tokenizer.json` and `tokenizer_config.json`
   * @throws TreewardError TEMPLATE_E_UNSTABLE (naming where), TEMPLATE_E_FORMAT, TEMPLATE_E_RENDER, TEMPLATE_E_FILE, FILE_E_MISSING
   */
  constructor(directory: string, options: HuggingFaceTemplateOptions = {}) {
    const { tokenizer, config, chatTemplate } = readTokenizerFiles(directory, options.chatTemplate);
    this.#tokenizer = new PlainTokenizer(tokenizer, config);
    const { control } = this.#tokenizer;
    const special = Object.fromEntries(
      ['bos_token', 'eos_token', 'pad_token', 'unk_token'].map((name) => [name, tokenText(config[name])]),
    );
    this.#pieces = new ChatPieces(chatTemplate, new ControlText(control), {
      ...special,
      ...VARIABLES,
      ...options.variables,
    });
    this.#format = this.#findFormat();
    const digest = createHash('sha256').update(JSON.stringify([chatTemplate, options.variables ?? null]));
    this.id = `huggingface-${this.#format.name}-${digest.digest('hex').slice(0, 8)}`;
    this.vocabSize = this.#tokenizer.vocabSize;
    this.generation = this.#encode(this.#pieces.generation);
    const others = [tokenText(config['eos_token']), ...OTHER_ENDS].flatMap((name) => control.get(name) ?? []);
    this.stopIds = [...new Set([this.#pieces.end, ...others])];
    this.#marks = new Map(
      this.#format.marks.flatMap((mark) => (control.has(mark) ? [[control.get(mark)!, mark]] : [])),
    );
    this.bannedIds = [...control.values()]
      .filter((id) => !this.stopIds.includes(id) && !this.#marks.has(id))
      .sort((a, b) => a - b);
    this.deviations = this.#probe(options.variant ?? 'strict');
  }

  head(tools: readonly ToolSpec[]): Int32Array {
    return this.#encode(this.#pieces.head(tools));
  }

  message(message: Message): Int32Array {
    return this.#encode(this.#pieces.message(message));
  }

  reply(parts: readonly ReplyPart[]): Int32Array {
    return this.#encode(this.#pieces.reply(parts));
  }

  /** A call's `id` is empty, as with {@link CompactTemplate}. A thought before the reply is not part of the turn. */
  parse(sampled: Int32Array): ParsedReply {
    const bad = (malformed: string): ParsedReply => ({
      parts: [{ type: 'text', text: this.decode(sampled) }],
      malformed,
    });
    const last = sampled.at(-1);
    if (last === undefined) return bad('no tokens');
    if (!this.stopIds.includes(last)) return bad('a turn that does not end');
    const parsed = this.#format.parse(this.#replyPieces(sampled.subarray(0, -1)));
    return 'malformed' in parsed ? bad(parsed.malformed) : parsed;
  }

  /** Control tokens spelled out. */
  decode(ids: Int32Array): string {
    return this.#tokenizer.decode(ids);
  }

  #encode(pieces: Parameters<PlainTokenizer['encodeRendered']>[0]): Int32Array {
    return this.#tokenizer.encodeRendered(pieces);
  }

  #replyPieces(ids: Int32Array): ReplyPiece[] {
    const textual = this.#format.spelled.filter((mark) => !this.#tokenizer.control.has(mark));
    return this.#tokenizer.split(ids).flatMap((piece): ReplyPiece[] => {
      if (typeof piece === 'string') return splitAtMarks(piece, textual);
      const mark = this.#marks.get(piece);
      return [mark === undefined ? { control: piece } : { mark }];
    });
  }

  /** By looking at how the template writes a call. */
  #findFormat(): CallFormat {
    const written = this.decode(
      this.reply([{ type: 'tool_call', id: 'call00000', name: 'f', arguments: { x: 'P' } }]),
    );
    if (written.includes('<tool_call>') && written.includes('"arguments"')) return hermes;
    if (written.includes('"name"') && written.includes('"parameters"')) return llama3Json;
    throw new TreewardError(
      'TEMPLATE_E_FORMAT',
      `the chat template writes a call as ${JSON.stringify(written)}, which no parser here reads`,
      {
        hints: [
          'use a template of the Qwen (hermes) or Llama 3 (JSON) family',
          'name a template file as `chatTemplate`',
        ],
      },
    );
  }

  #probe(variant: 'strict' | 'stable'): string[] {
    const deviations: string[] = [];
    for (const { name, tools, messages } of PROBES) {
      for (let length = 1; length <= messages.length; length++) {
        const start = messages.slice(0, length);
        if (start.at(-1)!.role === 'assistant') continue;
        const own = [
          ...this.head(tools),
          ...start.flatMap((message) => [...this.message(message)]),
          ...this.generation,
        ];
        const rendered = this.#pieces.whole(start, tools);
        // What the template itself refuses to render, it cannot render differently.
        if (!rendered) break;
        const whole = [...this.#encode(rendered)];
        if (own.join() === whole.join()) continue;
        if (variant === 'strict') {
          throw unstable(
            name,
            firstDifference(own, whole, (ids) => this.decode(Int32Array.from(ids))),
          );
        }
        deviations.push(name);
        break;
      }
    }
    return deviations;
  }
}

function firstDifference(
  own: readonly number[],
  whole: readonly number[],
  decode: (ids: readonly number[]) => string,
): string {
  let at = 0;
  while (at < own.length && own[at] === whole[at]) at++;
  const show = (ids: readonly number[]): string => JSON.stringify(decode(ids.slice(at, at + 8)));
  return `appending gives ${show(own)} at token ${at}, the template renders ${show(whole)}`;
}

function splitAtMarks(text: string, marks: readonly string[]): ReplyPiece[] {
  const mark = marks.find((candidate) => text.includes(candidate));
  if (mark === undefined) return text === '' ? [] : [{ text }];
  const at = text.indexOf(mark);
  return [
    ...splitAtMarks(text.slice(0, at), marks),
    { mark },
    ...splitAtMarks(text.slice(at + mark.length), marks),
  ];
}

function tokenText(token: unknown): string {
  if (typeof token === 'string') return token;
  const content = (token as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : '';
}
