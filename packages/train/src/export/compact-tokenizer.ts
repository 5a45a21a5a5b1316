import { TreewardError } from '@treeward/base';
import type { TokenizerJson } from '@treeward/policy';
import { COMPACT_CHAT_TEMPLATE } from './compact-chat-template.js';

/** GPT-2's letters for bytes: printable ones stand for themselves, the others for the code points from 256 on. */
function byteLetters(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}

/**
 * The files by which transformers reads the project's own tokenizer and template, by name. Ids stay what they are.
 *
 * @param maxLength tokens of a context
 * @throws TreewardError TOKENIZER_E_EXPORT when two ids spell the same: transformers knows tokens by their text
 */
export function compactTokenizerFiles(own: TokenizerJson, maxLength: number): Record<string, string> {
  const vocab = new Map<string, number>(own.specials.map((name, id) => [name, id]));
  const texts: string[] = [];
  byteLetters().forEach((letter, byte) => (texts[own.bytes_from + byte] = letter));
  const merges = own.merges.map(([left, right], i) => {
    texts[own.bytes_from + 256 + i] = texts[left]! + texts[right]!;
    return [texts[left]!, texts[right]!];
  });
  texts.forEach((text, id) => {
    const other = vocab.get(text);
    if (other !== undefined) {
      throw new TreewardError(
        'TOKENIZER_E_EXPORT',
        `ids ${other} and ${id} both spell ${JSON.stringify(text)}`,
        {
          data: { ids: [other, id] },
          hints: ['make a tokenizer of another size'],
        },
      );
    }
    vocab.set(text, id);
  });
  const special = (content: string, id: number): object => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  });
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: own.specials.map(special),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        // Runs of letters and single other characters, as `splitRuns`.
        { type: 'Split', pattern: { Regex: '[A-Za-z_]+|[^A-Za-z_]' }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocab),
      merges,
    },
  };
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    model_max_length: maxLength,
    clean_up_tokenization_spaces: false,
    pad_token: '<pad>',
    eos_token: '<eot>',
  };
  const id = (name: string): number => own.specials.indexOf(name);
  const generation = {
    eos_token_id: [id('<end>'), id('<eot>')],
    pad_token_id: id('<pad>'),
    // What the sampler masks.
    suppress_tokens: ['<pad>', '<sys>', '<user>', '<asst>', '<res>'].map(id),
  };
  const json = (value: object): string => `${JSON.stringify(value)}\n`;
  return {
    'tokenizer.json': json(tokenizer),
    'tokenizer_config.json': json(config),
    'generation_config.json': json(generation),
    'chat_template.jinja': COMPACT_CHAT_TEMPLATE,
  };
}
