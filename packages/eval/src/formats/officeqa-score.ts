/** A number in a text, with the unit word near it. */
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
const CURRENCY = '$£€¥₹¢₩₽';
const ACCOUNTING = new RegExp(
  `\\(\\s*([${CURRENCY}])?\\s*(\\d{1,3}(?:,\\d{3})*(?:\\.\\d+)?|\\d+(?:\\.\\d+)?)\\s*\\)`,
  'g',
);
const THOUSANDS = /(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)/g;

/** Longer is prose, not an answer. */
const LONGEST = 250;

const isYear = (value: number): boolean => Number.isInteger(value) && value >= 1900 && value <= 2100;
const minus = (text: string): string => text.replace(/\u2212/g, '-');

/** "(1,234)" is negative, as accountants write it, unless it is a year in brackets; currency signs go. */
const uniform = (text: string): string =>
  minus(text)
    .replace(ACCOUNTING, (whole, currency: string | undefined, number: string) =>
      currency === undefined && isYear(Number(number.replaceAll(',', ''))) ? whole : `-${number}`,
    )
    .replace(new RegExp(`[${CURRENCY}]`, 'g'), '');

/** The unit word is looked for within 20 characters. */
function numbersIn(text: string): Found[] {
  const bare = uniform(text).replace(THOUSANDS, (number) => number.replaceAll(',', ''));
  return [...bare.matchAll(/-?\d+\.?\d*%?/g)].map((match) => {
    const around = bare
      .slice(Math.max(0, match.index - 20), match.index + match[0].length + 20)
      .toLowerCase();
    return {
      value: Number(match[0].replace('%', '')),
      unit: UNITS.find(([, pattern]) => pattern.test(around))?.[0] ?? null,
    };
  });
}

/** What is left of an answer without numbers, unit words and punctuation: "May 1964" → "may". */
function wordsOf(text: string): string {
  const words = minus(text)
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

const agrees = (truth: Found, said: Found, tolerance: number): boolean =>
  (truth.unit === null || said.unit === null || truth.unit === said.unit) &&
  (truth.value === 0
    ? said.value === 0
    : Math.abs(truth.value - said.value) / Math.abs(truth.value) <= tolerance);

const inOrder = (truth: readonly Found[], said: readonly Found[], tolerance: number): boolean =>
  truth.length === said.length && truth.every((one, at) => agrees(one, said[at]!, tolerance));

/** What stands in the one pair of square brackets of a text that has no numbers outside them. */
function bracketed(text: string): string | null {
  const all = [...text.matchAll(/\[([^[\]]+)\]/g)];
  const [only] = all;
  if (all.length !== 1 || only === undefined) return null;
  const outside = text.slice(0, only.index) + text.slice(only.index + only[0].length);
  return /\d/.test(outside) ? null : only[1]!;
}

const ITEM = /^-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?$/;

/** Every reading of a comma-separated text as `count` numbers: "7,341,905" is [7, 341905], [7341, 905] and no others, for two. */
function readings(text: string, count: number): number[][] {
  const pieces = (bracketed(minus(text)) ?? minus(text)).split(',');
  const from = (start: number, left: number): number[][] => {
    if (left === 0) return start === pieces.length ? [[]] : [];
    const found: number[][] = [];
    for (let end = start + 1; end <= pieces.length - left + 1; end++) {
      const item = pieces.slice(start, end).join(',').trim();
      if (/\s,|,\s/.test(item)) continue;
      const bare = uniform(item);
      if (!ITEM.test(bare)) continue;
      const value = Number(bare.replace('%', '').replaceAll(',', ''));
      found.push(...from(end, left - 1).map((rest) => [value, ...rest]));
    }
    return found;
  };
  // More pieces than any list of this many numbers has: nothing is tried.
  return count < 2 || pieces.length > 6 * count ? [] : from(0, count);
}

const isList = (truth: string, wanted: readonly Found[]): boolean => {
  const body = bracketed(minus(truth));
  return (
    body !== null &&
    readings(body, wanted.length).some((values) => values.every((value, at) => value === wanted[at]!.value))
  );
};

/** Years beside the answer ("in 2023 it was 42") do not count, unless the truth is one or has words. */
function withoutYears(given: readonly Found[], truth: string, wanted: readonly Found[]): readonly Found[] {
  const kept = wanted.some(({ value }) => isYear(value)) || (wanted.length === 1 && wordsOf(truth) !== '');
  return kept ? given : given.filter(({ value }) => !isYear(value));
}

const strip = (text: string, sign: string): string => {
  let [from, to] = [0, text.length];
  while (from < to && text[from] === sign) from++;
  while (to > from && text[to - 1] === sign) to--;
  return text.slice(from, to);
};
const plain = (text: string): string =>
  strip(strip(text.trim().toLowerCase(), '"'), "'")
    .replace(/\([^)]*\)/g, '')
    .trim()
    .replace(/\s+/g, ' ');

/** The text between the answer tags, the last of them; without tags all of it. */
export function finalAnswer(message: string): string {
  const all = [...message.matchAll(/<FINAL_ANSWER>\s*([\s\S]*?)\s*<\/FINAL_ANSWER>/gi)];
  return (all.at(-1)?.[1] ?? message).trim();
}

/**
 * OfficeQA's comparison, as its `reward.py` has it since the scorer asks for a direct answer: 1 or 0. What was said must be one line of
 * at most 250 characters, without markup, with as many numbers as the truth. Numbers are compared as written, unit words apart ("217 million"
 * is met by 217, not by 217000000 nor by "217 billion"), within `tolerance` of the truth; a list in square brackets in its order, several
 * numbers otherwise in any; years beside the answer are passed over; words of the truth must be there too. A truth without numbers must be said
 * exactly, letter case, quotes and brackets apart.
 */
export function scoreAnswer(truth: string, message: string, tolerance = 0): number {
  const said = finalAnswer(message);
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  if (lines.length !== 1 || said.length > LONGEST || /unable to determine/i.test(said)) return 0;
  const wanted = numbersIn(truth);
  const all = numbersIn(said);
  if (wanted.length === 0) return all.length === 0 && plain(truth) === plain(said) ? 1 : 0;
  if (all.length === 0 || /<[^>]*>/.test(said)) return 0;
  const given = withoutYears(all, truth, wanted);
  if (isList(truth, wanted)) {
    const unitless = readings(said, wanted.length).map((values) =>
      values.map((value) => ({ value, unit: null })),
    );
    return [given, ...unitless].some((one) => inOrder(wanted, one, tolerance)) ? 1 : 0;
  }
  const met = wanted.every((one) => given.some((candidate) => agrees(one, candidate, tolerance)));
  return given.length === wanted.length && met && wordsAgree(truth, said) ? 1 : 0;
}
