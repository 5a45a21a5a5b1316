import { nestedTooDeep } from '@treeward/messages';

/** A JSON value of which nothing is known. Harness files are read leniently: what is not as expected is left out. */
export type Loose = Readonly<Record<string, unknown>>;

export const isLoose = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const loose = (value: unknown): Loose => (isLoose(value) ? value : {});

export const stringOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

export const listOf = (value: unknown): Loose[] => (Array.isArray(value) ? value.filter(isLoose) : []);

/** Milliseconds since the epoch, from a number or an ISO date. */
export function timeOf(value: unknown): number | null {
  const time = typeof value === 'number' ? value : typeof value === 'string' ? Date.parse(value) : NaN;
  return Number.isFinite(time) ? time : null;
}

/** One JSON object, empty where it is not one. */
export function jsonObject(bytes: Uint8Array | undefined): Loose {
  if (!bytes) return {};
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    // Agents can write to their transcripts: what could not go into a record is no line.
    return nestedTooDeep(value) ? {} : loose(value);
  } catch {
    return {};
  }
}

/** The objects of a JSONL file; the last line of a killed harness may be cut off. */
export function jsonLines(bytes: Uint8Array): Loose[] {
  return Buffer.from(bytes)
    .toString()
    .split('\n')
    .flatMap((line) => {
      const value = jsonObject(Buffer.from(line));
      return Object.keys(value).length > 0 ? [value] : [];
    });
}

/** Text of a string or of the text blocks of a list; null when there is none. */
export function textOf(content: unknown): string | null {
  if (typeof content === 'string') return content;
  const texts = listOf(content).flatMap((block) => stringOf(block['text']) ?? []);
  return texts.length > 0 ? texts.join('\n') : null;
}
