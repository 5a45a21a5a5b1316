import { readJson, TreewardError } from '@treeward/base';
import type { Tokenizer } from '../types.js';
import { FIRST_BYTE, FIRST_MERGE, SPECIALS, splitRuns, type Special } from './vocabulary.js';

/** `tokenizer.json`: the i-th merge joins a pair of ids into id `bytes_from + 256 + i`. */
export interface TokenizerJson {
  specials: string[];
  bytes_from: number;
  merges: [number, number][];
}

/** Text comes from untrusted tools: without a bound, a rollout that prints random words would grow the cache forever. */
const CACHE_LIMIT = 50_000;

const utf8 = new TextEncoder();
/** `ignoreBOM` keeps a leading U+FEFF; invalid bytes become U+FFFD. */
const fromUtf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Byte-level BPE over {@link splitRuns}. Text never encodes to a special id, whatever it spells: specials are placed by
 * templates only. `decode(encode(text)) === text` for every well-formed string (lone surrogates become U+FFFD).
 */
export class BpeTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly #merges: readonly (readonly [number, number])[];
  /** Pair of ids (`left * vocabSize + right`) to the id they merge into. Lower ids merge first. */
  readonly #ranks = new Map<number, number>();
  readonly #bytes: Uint8Array[] = [];
  readonly #cache = new Map<string, readonly number[]>();

  /** @throws TreewardError TOKENIZER_E_FILE when a merge names an id that does not exist yet */
  constructor(merges: readonly (readonly [number, number])[]) {
    this.vocabSize = FIRST_MERGE + merges.length;
    this.#merges = merges;
    for (let byte = 0; byte < 256; byte++) this.#bytes[FIRST_BYTE + byte] = Uint8Array.of(byte);
    merges.forEach(([left, right], i) => {
      const a = this.#bytes[left];
      const b = this.#bytes[right];
      if (!a || !b) {
        throw new TreewardError(
          'TOKENIZER_E_FILE',
          `merges[${i}] joins ${left} and ${right}: not both exist`,
        );
      }
      this.#bytes[FIRST_MERGE + i] = Uint8Array.of(...a, ...b);
      this.#ranks.set(left * this.vocabSize + right, FIRST_MERGE + i);
    });
  }

  /** @throws TreewardError FILE_E_MISSING, FILE_E_JSON, TOKENIZER_E_FILE */
  static load(path: string): BpeTokenizer {
    try {
      return BpeTokenizer.fromJson(readJson<TokenizerJson>(path));
    } catch (error) {
      if (!TreewardError.isInstance(error) || error.code !== 'TOKENIZER_E_FILE') throw error;
      throw new TreewardError(error.code, `${path}: ${error.message}`, {
        data: { file: path },
        cause: error,
      });
    }
  }

  /** @throws TreewardError TOKENIZER_E_FILE when the layout is not the one templates rely on */
  static fromJson(json: TokenizerJson): BpeTokenizer {
    if (JSON.stringify(json.specials) !== JSON.stringify(SPECIALS) || json.bytes_from !== FIRST_BYTE) {
      throw new TreewardError(
        'TOKENIZER_E_FILE',
        `specials must be ${SPECIALS.join(' ')} with bytes_from ${FIRST_BYTE}`,
      );
    }
    if (!Array.isArray(json.merges))
      throw new TreewardError('TOKENIZER_E_FILE', 'merges must be a list of pairs');
    return new BpeTokenizer(json.merges);
  }

  toJson(): TokenizerJson {
    return {
      specials: [...SPECIALS],
      bytes_from: FIRST_BYTE,
      merges: this.#merges.map(([left, right]) => [left, right]),
    };
  }

  special(name: Special): number {
    return SPECIALS.indexOf(name);
  }

  encode(text: string): Int32Array {
    const ids: number[] = [];
    for (const run of splitRuns(text)) for (const id of this.#encodeRun(run)) ids.push(id);
    return Int32Array.from(ids);
  }

  /** Specials are spelled out (`<call>`), ids outside the vocabulary as `<?id>`: for eyes and error texts. */
  decode(ids: ArrayLike<number>): string {
    let out = '';
    const run: number[] = [];
    const flush = (): void => {
      if (run.length) out += fromUtf8.decode(Uint8Array.from(run));
      run.length = 0;
    };
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      const bytes = this.#bytes[id];
      if (bytes) {
        for (const byte of bytes) run.push(byte);
      } else {
        flush();
        out += SPECIALS[id] ?? `<?${id}>`;
      }
    }
    flush();
    return out;
  }

  #encodeRun(run: string): readonly number[] {
    const known = this.#cache.get(run);
    if (known) return known;
    const ids = Array.from(utf8.encode(run), (byte) => FIRST_BYTE + byte);
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < ids.length; i++) {
        const rank = this.#ranks.get(ids[i]! * this.vocabSize + ids[i + 1]!);
        if (rank !== undefined && rank < best) [best, at] = [rank, i];
      }
      if (at < 0) break;
      ids.splice(at, 2, best);
    }
    if (this.#cache.size >= CACHE_LIMIT) this.#cache.clear();
    this.#cache.set(run, ids);
    return ids;
  }
}
