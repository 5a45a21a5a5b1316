/** A number in a text, with what stands around it. */
interface Found {
  value: number;
  unit: string | null;
}

const UNITS: readonly (readonly [string, RegExp])[] = [
  ['trillion', /\btrillions?\b/],
  ['billion', /\bbillions?\b|\bb\b/],
  ['million', /\bmillions?\b|\bm\b/],
  ['thousand', /\bthousands?\b|\bk\b/],
];
const UNIT_WORDS = /\b(?:trillions?|billions?|millions?|thousands?|hundreds?|percent|percentage)\b/g;

const plain = (text: string): string => text.replace(/[\u2212\u2013]/g, '-');

/** Thousands separators are taken out first; the unit word is looked for within 20 characters. */
function numbersIn(text: string): Found[] {
  const bare = plain(text).replaceAll(',', '');
  return [...bare.matchAll(/-?\d+\.?\d*%?/g)].map((match) => {
    const context = bare
      .slice(Math.max(0, match.index - 20), match.index + match[0].length + 20)
      .toLowerCase();
    return {
      value: Number(match[0].replace('%', '')),
      unit: UNITS.find(([, pattern]) => pattern.test(context))?.[0] ?? null,
    };
  });
}

const isYear = (value: number): boolean => Number.isInteger(value) && value >= 1900 && value <= 2100;

/** What is left of an answer without numbers, unit words and punctuation: "March 1977" → "march". */
function wordsOf(text: string): string {
  const words = plain(text)
    .toLowerCase()
    .replace(/-?\d+\.?\d*%?/g, '')
    .replaceAll(',', '')
    .replace(UNIT_WORDS, '')
    .replace(/[^\p{L}\p{N}_\s]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return words.length >= 2 ? words : '';
}

/** Do the words agree? A truth without words asks for none. */
function wordsAgree(truth: string, said: string): boolean {
  const wanted = wordsOf(truth);
  if (wanted === '') return true;
  const given = wordsOf(said);
  return given !== '' && (given.includes(wanted) || wanted.includes(given));
}

const close = (truth: number, said: number, tolerance: number): boolean =>
  truth === 0 ? said === 0 : Math.abs(truth - said) / Math.abs(truth) <= tolerance;

/** The text between the answer tags, the last of them; null without tags or with nothing between. */
export function finalAnswer(message: string): string | null {
  const all = [...message.matchAll(/<FINAL_ANSWER>\s*([\s\S]*?)\s*<\/FINAL_ANSWER>/gi)];
  return all.at(-1)?.[1]?.trim() || null;
}

/**
 * OfficeQA's comparison: 1 when the answer is in what was said, else 0. Numbers are compared as written, unit words apart ("543
 * million" is met by 543, not by 543000000), within `tolerance` of the truth; a truth with several numbers needs all of them;
 * incidental years are passed over unless the truth is or names one; words of the truth must be there too. Without numbers
 * the truth must occur in what was said, letter case and brackets apart. An empty answer is 0.
 */
export function scoreAnswer(truth: string, message: string, tolerance = 0): number {
  const said = finalAnswer(message) ?? message;
  if (said.trim() === '') return 0;
  const wanted = numbersIn(truth);
  const given = numbersIn(said);
  if (wanted.length > 0 && given.length > 0) {
    const agree = wordsAgree(truth, said);
    const keepYears =
      wanted.length > 1
        ? wanted.some(({ value }) => isYear(value))
        : isYear(wanted[0]!.value) || wordsOf(truth) !== '';
    const candidates = keepYears ? given : given.filter(({ value }) => !isYear(value));
    const met = wanted.every(({ value }) =>
      candidates.some((candidate) => close(value, candidate.value, tolerance)),
    );
    return agree && met ? 1 : 0;
  }
  const bare = (text: string): string =>
    text
      .trim()
      .toLowerCase()
      .replace(/^["']+|["']+$/g, '')
      .replace(/\([^)]*\)/g, '')
      .replace(/\s+/g, ' ')
      .trim();
  const key = bare(truth);
  return key !== '' && bare(said).includes(key) ? 1 : 0;
}
