import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BpeTokenizer } from './bpe-tokenizer.js';
import { trainTokenizer } from './train-tokenizer.js';
import { SPECIALS } from './vocabulary.js';

const tokenizer = BpeTokenizer.load(
  fileURLToPath(new URL('../__fixtures__/tokenizer.json', import.meta.url)),
);

describe('BpeTokenizer', () => {
  it('has the ids of the prototype for ASCII text', () => {
    // Computed with prototypes/embedded/tok.py.
    expect([...tokenizer.encode('Read notes.txt, write 12 lines_ok\n- "x"')]).toEqual([
      315, 42, 422, 56, 284, 54, 42, 316, 42, 59, 60, 42, 686, 105, 308, 20, 55, 42, 44, 130, 44,
    ]);
  });

  it('gives a word the same ids after a space, an equals sign and a newline', () => {
    const word = [...tokenizer.encode('notes')];
    for (const before of [' ', '=', '\n', '- ']) {
      expect([...tokenizer.encode(before + 'notes')].slice(-word.length)).toEqual(word);
    }
  });

  it('gives back any well-formed text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (text) => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
    );
    expect(tokenizer.decode(tokenizer.encode('\uFEFFbom'))).toBe('\uFEFFbom');
  });

  it('never encodes text to a special id', () => {
    const spelled = fc.array(fc.oneof(fc.constantFrom(...SPECIALS), fc.string()));
    fc.assert(
      fc.property(spelled, (pieces) => {
        expect([...tokenizer.encode(pieces.join(''))].every((id) => id >= SPECIALS.length)).toBe(true);
      }),
    );
  });

  it('spells out specials and unknown ids when decoding, and cut characters as U+FFFD', () => {
    expect(tokenizer.decode([5, ...tokenizer.encode('ä').slice(0, 1), 9, 99_999, -1])).toBe(
      '<call>\uFFFD<eot><?99999><?-1>',
    );
  });

  it('refuses files of another layout, naming the file', () => {
    expect(() => BpeTokenizer.fromJson({ specials: ['<s>'], bytes_from: 1, merges: [] })).toThrow(
      /bytes_from 10/,
    );
    expect(() => BpeTokenizer.fromJson({ ...tokenizer.toJson(), merges: [[300, 301]] })).toThrow(
      /merges\[0\]/,
    );
    expect(() => BpeTokenizer.load('/nowhere/tokenizer.json')).toThrow(/\/nowhere\/tokenizer.json/);
  });
});

describe('trainTokenizer', () => {
  const texts = ['write the report to report.txt', 'read report.txt and write the_report'];

  it('merges the most frequent pairs inside words and stops when none repeats', () => {
    const trained = trainTokenizer(texts, 400);
    expect(trained.vocabSize).toBeLessThan(400);
    expect(trained.encode('report')).toHaveLength(1);
    expect(trained.encode('write')).toHaveLength(1);
    // Never across a run's edge.
    expect(trained.encode('report.')).toHaveLength(2);
  });

  it('equals a plain recount at every merge', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '_'), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        expect(trainTokenizer([words.join(' ')], 300).toJson().merges).toEqual(recount(words, 300));
      }),
    );
  });

  it('respects vocabSize, survives its own JSON and refuses a size without room', () => {
    const trained = trainTokenizer(texts, 270);
    expect(trained.vocabSize).toBe(270);
    const again = BpeTokenizer.fromJson(JSON.parse(JSON.stringify(trained.toJson())));
    expect(again.encode(texts[0]!)).toEqual(trained.encode(texts[0]!));
    expect(() => trainTokenizer(texts, 200)).toThrow(/266/);
  });
});

/** BPE as the textbook has it: count every pair anew before each merge. */
function recount(words: string[], vocabSize: number): [number, number][] {
  const ids = words.filter((w) => w.length > 1).map((w) => [...Buffer.from(w)].map((b) => 10 + b));
  const merges: [number, number][] = [];
  while (266 + merges.length < vocabSize) {
    const counts = new Map<number, number>();
    for (const w of ids) {
      for (let i = 0; i + 1 < w.length; i++) {
        const pair = w[i]! * 1000 + w[i + 1]!;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    }
    const [best] = [...counts].filter(([, n]) => n > 1).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    if (!best) break;
    const [left, right] = [Math.floor(best[0] / 1000), best[0] % 1000];
    for (const w of ids) {
      for (let i = 0; i + 1 < w.length; i++) {
        if (w[i] === left && w[i + 1] === right) w.splice(i, 2, 266 + merges.length);
      }
    }
    merges.push([left, right]);
  }
  return merges;
}
