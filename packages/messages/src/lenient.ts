import { TreewardError } from '@treeward/base';
import { z } from 'zod';

/** Content as any dialect may send it: nothing, a string, or blocks (bare strings among them are tolerated). */
export const blockSchema = z.union([z.string(), z.looseObject({ type: z.string() })]);
export const contentSchema = z.union([z.string(), z.array(blockSchema)]).nullish();
export type Block = { type: string } & Record<string, unknown>;
export type Content = z.infer<typeof contentSchema>;

/** @throws TreewardError DIALECT_E_BODY naming the first field that does not fit */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const field = issue?.path.join('.') || 'body';
  throw new TreewardError('DIALECT_E_BODY', `${field}: ${issue?.message ?? 'not understood'}`, {
    data: { field },
  });
}

/** Content as a list of blocks, so that the string and the list form mean the same. */
export function blocksOf(content: Content): Block[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return content.map((block) => (typeof block === 'string' ? { type: 'text', text: block } : block));
}

const IMAGE_TYPES = new Set(['image', 'image_url', 'input_image']);

/**
 * The text of one block, or null for a block that carries none; names of blocks that are not understood go to `unknown`.
 * @throws TreewardError DIALECT_E_IMAGE
 */
export function blockText(block: Block, where: string, unknown: Set<string>): string | null {
  if (IMAGE_TYPES.has(block.type)) {
    throw new TreewardError('DIALECT_E_IMAGE', `${where}: this policy reads text only, an image was sent`, {
      data: { field: where },
      hints: ['give the task or harness no images, or use a policy that reads them'],
    });
  }
  if (block.type === 'text' || block.type === 'input_text' || block.type === 'output_text') {
    return typeof block['text'] === 'string' ? block['text'] : '';
  }
  if (block.type === 'refusal') return typeof block['refusal'] === 'string' ? block['refusal'] : '';
  // The harness's answer to its own tool search names the tool that is now available.
  if (block.type === 'tool_reference') {
    return typeof block['tool_name'] === 'string' ? block['tool_name'] : '';
  }
  unknown.add(`block ${block.type}`);
  return null;
}

/** The texts of all blocks, one per line. */
export function contentText(content: Content, where: string, unknown: Set<string>): string {
  return blocksOf(content)
    .map((block) => blockText(block, where, unknown))
    .filter((text) => text !== null)
    .join('\n');
}

export function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/** Call arguments from an object or JSON text. What is no object is kept under `_raw`: history must not fail a request. */
export function argumentsOf(value: unknown): Record<string, unknown> {
  if (value === null || value === undefined || value === '') return {};
  const direct = objectOf(value);
  if (direct) return direct;
  if (typeof value === 'string') {
    try {
      const parsed: unknown = JSON.parse(value);
      return parsed === null ? {} : (objectOf(parsed) ?? { _raw: value });
    } catch {
      return { _raw: value };
    }
  }
  return { _raw: value };
}

/** Names in `body` that this dialect does not know. */
export function noteUnknown(body: object, known: ReadonlySet<string>, unknown: Set<string>): void {
  for (const name of Object.keys(body)) if (!known.has(name)) unknown.add(name);
}
