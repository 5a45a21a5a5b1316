import { parseDocument } from 'yaml';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';

const workspaceFile = z.union([
  z.object({ source: z.string().min(1), dest: z.string().min(1) }),
  z.object({ path: z.string().min(1), content: z.string() }),
]);

const session = z.union([
  z.string().min(1),
  z
    .object({
      id: z.coerce.string().nullish(),
      prompt: z.string().nullish(),
      message: z.string().nullish(),
      new_session: z.boolean().nullish(),
    })
    .refine(({ prompt, message }) => Boolean(prompt ?? message), 'needs a prompt or a message'),
]);

const schema = z.looseObject({
  id: z.coerce.string().min(1),
  name: z.coerce.string().nullish(),
  category: z.coerce.string().nullish(),
  grading_type: z.enum(['automated', 'llm_judge', 'hybrid']).nullish(),
  timeout_seconds: z.coerce.number().gt(0).nullish(),
  workspace_files: z.array(workspaceFile).nullish(),
  grading_weights: z
    .object({ automated: z.coerce.number().min(0).nullish(), llm_judge: z.coerce.number().min(0).nullish() })
    .nullish(),
  multi_session: z.boolean().nullish(),
  sessions: z.array(session).nullish(),
  live: z.boolean().nullish(),
  quarantined: z.string().nullish(),
});

export type FrontMatter = z.infer<typeof schema>;

const BLOCK = /^---[ \t]*\n([\s\S]*?)\n---[ \t]*(?:\n([\s\S]*))?$/;

/**
 * The YAML block that a task file begins with, and the body below it. Keys that are not ours stay in it.
 * @throws TreewardError TASK_E_FRONT_MATTER naming the file and field
 */
export function parseFrontMatter(text: string, file: string): { meta: FrontMatter; body: string } {
  const fail = (what: string, field?: string): TreewardError =>
    new TreewardError('TASK_E_FRONT_MATTER', `${file}: ${what}`, {
      data: { file, ...(field !== undefined && { field }) },
      hints: ['a task file begins with --- , a YAML block with at least an id, and ---'],
    });
  const [, yaml, body = ''] = BLOCK.exec(text) ?? [];
  if (yaml === undefined) throw fail('there is no front matter');
  const document = parseDocument(yaml, { uniqueKeys: true });
  const error = document.errors[0];
  if (error) throw fail(`the front matter is not valid YAML: ${error.message.split('\n')[0]}`);
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw fail(`the front matter is not usable: ${(cause as Error).message}`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    const field = issue.path.join('.');
    throw fail(`front matter field ${field || '(the block)'}: ${issue.message}`, field);
  }
  return { meta: parsed.data, body };
}
