import { TreewardError } from '@treeward/base';
import { BpeTokenizer } from './bpe-tokenizer.js';
import { FIRST_BYTE, FIRST_MERGE, splitRuns } from './vocabulary.js';

interface Word {
  ids: number[];
  count: number;
}

/**
 * Learns BPE merges inside letter runs: the most frequent pair first, ties by the lower pair of ids, so the result is
 * a function of the texts alone. Stops early when no pair occurs twice, so `vocabSize` is an upper bound.
 *
 * Pair counts are kept up to date from the words a merge touches rather than recounted: about linear in the corpus.
 *
 * @throws TreewardError TOKENIZER_E_SIZE when `vocabSize` leaves no room for specials and bytes
 */
export function trainTokenizer(texts: Iterable<string>, vocabSize: number): BpeTokenizer {
  if (!Number.isInteger(vocabSize) || vocabSize < FIRST_MERGE) {
    throw new TreewardError(
      'TOKENIZER_E_SIZE',
      `vocabSize is ${vocabSize}; specials and bytes already need ${FIRST_MERGE}`,
    );
  }
  const words = countWords(texts);
  const counts = new Map<number, number>();
  const places = new Map<number, Set<Word>>();
  const key = (left: number, right: number): number => left * vocabSize + right;
  const tally = (word: Word, sign: 1 | -1): void => {
    for (let i = 0; i + 1 < word.ids.length; i++) {
      const pair = key(word.ids[i]!, word.ids[i + 1]!);
      counts.set(pair, (counts.get(pair) ?? 0) + sign * word.count);
      // A stale place is harmless: replacing a pair that a word no longer has changes nothing.
      if (sign > 0) (places.get(pair) ?? places.set(pair, new Set()).get(pair)!).add(word);
    }
  };
  for (const word of words) tally(word, 1);

  const merges: [number, number][] = [];
  while (FIRST_MERGE + merges.length < vocabSize) {
    let best = -1;
    let most = 1;
    for (const [pair, count] of counts) {
      if (count > most || (count === most && best >= 0 && pair < best)) [best, most] = [pair, count];
    }
    if (best < 0) break;
    const left = Math.floor(best / vocabSize);
    const right = best % vocabSize;
    const merged = FIRST_MERGE + merges.length;
    merges.push([left, right]);
    for (const word of places.get(best) ?? []) {
      tally(word, -1);
      for (let i = 0; i + 1 < word.ids.length; i++) {
        if (word.ids[i] === left && word.ids[i + 1] === right) word.ids.splice(i, 2, merged);
      }
      tally(word, 1);
    }
    counts.delete(best);
    places.delete(best);
  }
  return new BpeTokenizer(merges);
}

function countWords(texts: Iterable<string>): Word[] {
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const run of splitRuns(text)) {
      if (run.length > 1 && /^[A-Za-z_]/.test(run)) counts.set(run, (counts.get(run) ?? 0) + 1);
    }
  }
  const encoder = new TextEncoder();
  return [...counts].map(([run, count]) => ({
    ids: Array.from(encoder.encode(run), (byte) => FIRST_BYTE + byte),
    count,
  }));
}
