import { Tokenizer as Library } from '@huggingface/tokenizers';
import { TreewardError } from '@treeward/base';
import type { Tokenizer } from '../../types.js';
import type { Rendered } from './control-text.js';
import type { TokenizerConfigFile, TokenizerFile } from './tokenizer-files.js';

/**
 * A `tokenizer.json` whose added tokens the encoder does not know: text never encodes to one of their ids, whatever it spells.
 * Templates place them by id.
 */
export class PlainTokenizer implements Tokenizer {
  readonly vocabSize: number;
  /** Every added token, special or not, by its text. */
  readonly control: ReadonlyMap<string, number>;
  readonly #library: Library;
  readonly #names: ReadonlyMap<number, string>;

  /** @throws TreewardError TEMPLATE_E_FILE for a kind of tokenizer that the library does not know */
  constructor(tokenizer: TokenizerFile, config: TokenizerConfigFile) {
    this.control = new Map(tokenizer.added_tokens.map(({ content, id }) => [content, id]));
    this.#names = new Map(tokenizer.added_tokens.map(({ content, id }) => [id, content]));
    // Some files list the added tokens in the vocabulary too, from where a merge could still reach them.
    let { vocab } = tokenizer.model;
    let size = 0;
    for (const id of [...Object.values(vocab), ...this.control.values()]) size = Math.max(size, id + 1);
    this.vocabSize = size;
    const listed = [...this.control.keys()].filter((name) => name in vocab);
    if (listed.length > 0) vocab = { ...vocab };
    for (const name of listed) delete vocab[name];
    const plain = { ...tokenizer, added_tokens: [], model: { ...tokenizer.model, vocab } };
    try {
      this.#library = new Library(plain, config);
    } catch (cause) {
      const { message } = cause as Error;
      throw new TreewardError('TEMPLATE_E_FILE', `tokenizer.json cannot be used: ${message}`, { cause });
    }
  }

  encode(text: string): Int32Array {
    if (text === '') return new Int32Array(0);
    return Int32Array.from(this.#library.encode(text, { add_special_tokens: false }).ids);
  }

  /** Neighbouring texts are encoded as one, as the template's whole would be. */
  encodeRendered(pieces: readonly Rendered[]): Int32Array {
    const ids: number[] = [];
    for (const piece of pieces) {
      if (typeof piece === 'number') ids.push(piece);
      else for (const id of this.encode(piece)) ids.push(id);
    }
    return Int32Array.from(ids);
  }

  /** Control tokens are spelled out, ids outside the vocabulary as `<?id>`. */
  decode(ids: ArrayLike<number>): string {
    return this.split(ids)
      .map((piece) => (typeof piece === 'number' ? (this.#names.get(piece) ?? `<?${piece}>`) : piece))
      .join('');
  }

  /** Control tokens (and ids outside the vocabulary) as ids, what is between them decoded. */
  split(ids: ArrayLike<number>): Rendered[] {
    const out: Rendered[] = [];
    let run: number[] = [];
    const flush = (): void => {
      if (run.length > 0) out.push(this.#library.decode(run, { clean_up_tokenization_spaces: false }));
      run = [];
    };
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      if (!this.#names.has(id) && this.#library.id_to_token(id) !== undefined) {
        run.push(id);
        continue;
      }
      flush();
      out.push(id);
    }
    flush();
    return out;
  }
}
