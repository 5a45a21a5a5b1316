import { wordsOf } from './texts.js';

/** Words in one anchor. */
const GRAM = 4;
/** Anchors of one text: densely at its beginning, which a cut leaves standing, then spread over the rest. */
const DENSE = 16;
const SPREAD = 16;
/** References kept per anchor, the latest: what everybody says identifies nobody. */
const POSTINGS = 16;

export interface AnchorHit {
  ref: number;
  /** Share of the anchors of the stored text that stand in the text asked about. */
  coverage: number;
  anchors: number;
}

/**
 * Finds which of many stored texts stand inside a larger one, whole, cut or slightly edited, in time linear in the text
 * asked about: every stored text is known by some of its runs of four words. Texts shorter than that are not found.
 */
export class AnchorIndex {
  readonly #postings = new Map<string, number[]>();
  readonly #anchors = new Map<number, number>();

  add(text: string, ref: number): void {
    const words = wordsOf(text);
    const last = words.length - GRAM;
    if (last < 0) return;
    const places = new Set<number>();
    for (let at = 0; at <= last && places.size < DENSE; at += GRAM) places.add(at);
    for (let k = 1; k <= SPREAD; k++) places.add(Math.floor((last * k) / SPREAD));
    const grams = new Set([...places].map((at) => gram(words, at)));
    for (const key of grams) {
      let list = this.#postings.get(key);
      if (!list) this.#postings.set(key, (list = []));
      list.push(ref);
      if (list.length > POSTINGS) list.shift();
    }
    this.#anchors.set(ref, grams.size);
  }

  /** Best covered first; of equally well covered ones the one that was added with the greater number. */
  find(text: string): AnchorHit[] {
    const words = wordsOf(text);
    const hits = new Map<number, number>();
    const seen = new Set<string>();
    for (let at = 0; at + GRAM <= words.length; at++) {
      const key = gram(words, at);
      const list = this.#postings.get(key);
      if (!list || seen.has(key)) continue;
      seen.add(key);
      for (const ref of list) hits.set(ref, (hits.get(ref) ?? 0) + 1);
    }
    return [...hits]
      .map(([ref, count]) => {
        const anchors = this.#anchors.get(ref)!;
        return { ref, coverage: count / anchors, anchors };
      })
      .sort((a, b) => b.coverage - a.coverage || b.ref - a.ref);
  }
}

function gram(words: readonly string[], at: number): string {
  return words.slice(at, at + GRAM).join(' ');
}
