import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import { BpeTokenizer } from '../tokenizer/bpe-tokenizer.js';
import type { ChatTemplate } from '../types.js';
import { CompactTemplate } from './compact.js';
import { HuggingFaceTemplate } from './huggingface.js';

export const templateSpec = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('compact'),
    /** Path of the project's own `tokenizer.json`. */
    tokenizer: z.string().min(1),
  }),
  z.strictObject({
    kind: z.literal('huggingface'),
    /** Holds `tokenizer.json` and `tokenizer_config.json`. */
    directory: z.string().min(1),
    chatTemplate: z.string().min(1).exactOptional(),
    variant: z.enum(['strict', 'stable']).exactOptional(),
    variables: z.record(z.string(), z.unknown()).exactOptional(),
  }),
]);

/** Which template, as data: worker threads, other processes and the command line build it from this. */
export type TemplateSpec = z.infer<typeof templateSpec>;

/** @throws TreewardError TEMPLATE_E_SPEC naming the field, or what the template's own files cause */
export function createTemplate(spec: TemplateSpec): ChatTemplate {
  const checked = templateSpec.safeParse(spec);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const field = ['template', ...(issue?.path ?? [])].join('.');
    throw new TreewardError('TEMPLATE_E_SPEC', `${field}: ${issue?.message}`, { data: { field } });
  }
  const valid = checked.data;
  if (valid.kind === 'compact') return new CompactTemplate(BpeTokenizer.load(valid.tokenizer));
  const { kind: _, directory, ...options } = valid;
  return new HuggingFaceTemplate(directory, options);
}
