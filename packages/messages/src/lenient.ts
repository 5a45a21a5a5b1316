import { TreewardError } from '@treeward/base';
import { z } from 'zod';
import type { RequestedSampling } from './types.js';

/** Content as any dialect may send it: nothing, a string, or blocks (bare strings among them are tolerated). */
export const blockSchema = z.union([z.string(), z.looseObject({ type: z.string() })]);
export const contentSchema = z.union([z.string(), z.array(blockSchema)]).nullish();
export type Block = { type: string } & Record<string, unknown>;
export type Content = z.infer<typeof contentSchema>;

/** Deeper JSON than any harness has use for: what renders, hashes and writes it later is recursive and ends at some 4,000. */
const DEPTH_LIMIT = 500;

/**
 * `accepts` says by hand what `schema` says, in a fraction of its time: the schema runs only on what is refused, to say
 * why. parse-fuzz.test.ts holds the two equal.
 * @throws TreewardError DIALECT_E_BODY naming the first field that does not fit
 */
export function parseBody<T>(
  schema: z.ZodType<T>,
  accepts: (body: Record<string, unknown>) => boolean,
  body: unknown,
): T {
  if (nestedTooDeep(body)) throw unreadable('body', `nested deeper than ${DEPTH_LIMIT} levels`);
  if (isObject(body) && accepts(body)) return body as T;
  const issue = schema.safeParse(body).error?.issues[0];
  throw unreadable(issue?.path.join('.') || 'body', issue?.message ?? 'not understood');
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Checks of `accepts`, named after what the schemas call them; absent and null are the same everywhere. */
export const isNullish = (value: unknown): value is null | undefined => value === null || value === undefined;
export const nullishString = (value: unknown): boolean => isNullish(value) || typeof value === 'string';
export const nullishNumber = (value: unknown): boolean => isNullish(value) || Number.isFinite(value);
export const nullishBoolean = (value: unknown): boolean => isNullish(value) || typeof value === 'boolean';
export const nullishObject = (
  value: unknown,
  check: (fields: Record<string, unknown>) => boolean = () => true,
): boolean => isNullish(value) || (isObject(value) && check(value));

export const nullishStrings = (value: unknown): boolean =>
  isNullish(value) || (Array.isArray(value) && value.every((item) => typeof item === 'string'));

export function isObjects(
  value: unknown,
  check: (fields: Record<string, unknown>) => boolean = () => true,
): boolean {
  return Array.isArray(value) && value.every((item) => isObject(item) && check(item));
}

export const nullishObjects = (
  value: unknown,
  check?: (fields: Record<string, unknown>) => boolean,
): boolean => isNullish(value) || isObjects(value, check);

/** `contentSchema` by hand. */
export function isContent(value: unknown): value is Content {
  if (isNullish(value) || typeof value === 'string') return true;
  return (
    Array.isArray(value) &&
    value.every(
      (block) => typeof block === 'string' || (isObject(block) && typeof block['type'] === 'string'),
    )
  );
}

/** The error that names a field and what is wrong with it. */
export function unreadable(field: string, problem: string, code = 'DIALECT_E_BODY'): TreewardError {
  return new TreewardError(code, `${field}: ${problem}`, { data: { field } });
}

/** Whether JSON from a body, a sampled call or a file is nested too deeply to be worked with. */
export const nestedTooDeep = (value: unknown): boolean => isDeeper(value, DEPTH_LIMIT);

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels < 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isDeeper(value[i], levels - 1)) return true;
    return false;
  }
  for (const name in value) if (isDeeper((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}

/** Content as a list of blocks, so that the string and the list form mean the same. */
export function blocksOf(content: Content): Block[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return content.map((block) => (typeof block === 'string' ? { type: 'text', text: block } : block));
}

const IMAGE_TYPES = new Set(['image', 'image_url', 'input_image']);
const FILE_TYPES = new Set([
  'document',
  'file',
  'input_file',
  'input_audio',
  'audio',
  'video',
  'input_video',
]);

/**
 * The text of one block, or null for a block that carries none; names of blocks that are not understood go to `unknown`.
 * @throws TreewardError DIALECT_E_IMAGE, DIALECT_E_FILE: history without them would not be what the harness believes
 */
export function blockText(block: Block, where: string, unknown: Set<string>): string | null {
  if (IMAGE_TYPES.has(block.type)) {
    throw unreadable(where, 'this policy reads text only, an image was sent', 'DIALECT_E_IMAGE');
  }
  if (FILE_TYPES.has(block.type)) {
    throw unreadable(where, `this policy reads text only, a ${block.type} was sent`, 'DIALECT_E_FILE');
  }
  if (block.type === 'text' || block.type === 'input_text' || block.type === 'output_text') {
    return stringOf(block['text']);
  }
  if (block.type === 'refusal') return stringOf(block['refusal']);
  // The harness's answer to its own tool search names the tool that is now available.
  if (block.type === 'tool_reference') return stringOf(block['tool_name']);
  unknown.add(`block ${block.type}`);
  return null;
}

/** Path of block `index` of the content at `where`. */
export const blockPath = (content: Content, where: string, index: number): string =>
  Array.isArray(content) ? `${where}.${index}` : where;

/** The texts of all blocks, in order. `where` is the path of the content itself. */
export function contentTexts(content: Content, where: string, unknown: Set<string>): string[] {
  return blocksOf(content)
    .map((block, index) => blockText(block, blockPath(content, where, index), unknown))
    .filter((text) => text !== null);
}

/** The texts of all blocks, one per line. */
export const contentText = (content: Content, where: string, unknown: Set<string>): string =>
  typeof content === 'string' ? content : contentTexts(content, where, unknown).join('\n');

/** What a tool gave back: content like any other, or else JSON as it stands. */
export function resultText(value: unknown, where: string, unknown: Set<string>): string {
  return isContent(value) ? contentText(value, where, unknown) : JSON.stringify(value);
}

export function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/** A string, or '' for what is none. */
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Call arguments from an object or JSON text. What is no object is kept under `_raw`: history must not fail a request. */
export function argumentsOf(value: unknown): Record<string, unknown> {
  if (value === null || value === undefined || value === '') return {};
  const direct = objectOf(value);
  if (direct) return direct;
  if (typeof value === 'string') {
    try {
      const parsed: unknown = JSON.parse(value);
      if (parsed === null) return {};
      const object = objectOf(parsed);
      return object && !nestedTooDeep(object) ? object : { _raw: value };
    } catch {
      return { _raw: value };
    }
  }
  return { _raw: value };
}

/** A JSON schema of arguments; a tool without one takes none. */
export const parametersOf = (value: unknown): Record<string, unknown> =>
  objectOf(value) ?? { type: 'object', properties: {} };

/** What a dialect calls its sampling parameters, in one shape; absent and null are the same. */
export function samplingOf(asked: {
  [K in keyof RequestedSampling]-?: RequestedSampling[K] | null | undefined;
}): RequestedSampling {
  const { temperature, topP, topK, maxTokens, stop, effort } = asked;
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(topK != null && { topK }),
    ...(maxTokens != null && { maxTokens }),
    ...(stop?.length && { stop }),
    ...(effort && { effort }),
  };
}

/** Names in `body` that this dialect does not know. */
export function noteUnknown(body: object, known: ReadonlySet<string>, unknown: Set<string>): void {
  for (const name of Object.keys(body)) if (!known.has(name)) unknown.add(name);
}
