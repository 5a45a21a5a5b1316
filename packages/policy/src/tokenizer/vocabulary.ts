/**
 * The special ids, in id order: role markers, the marks of a call, and the two turn endings. They come before the 256
 * bytes; merges follow the bytes.
 */
export const SPECIALS = [
  '<pad>',
  '<sys>',
  '<user>',
  '<asst>',
  '<res>',
  '<call>',
  '<arg>',
  '<eq>',
  '<end>',
  '<eot>',
] as const;

export type Special = (typeof SPECIALS)[number];

export const FIRST_BYTE = SPECIALS.length;
export const FIRST_MERGE = FIRST_BYTE + 256;

/**
 * Runs of letters and underscores, and single other characters. Merges stay inside a run, so a word has the same ids
 * after a space, `=`, a newline or `- `: a small policy can copy a word without learning one spelling per context.
 */
export const splitRuns = (text: string): string[] => text.match(/[A-Za-z_]+|[^A-Za-z_]/gu) ?? [];
