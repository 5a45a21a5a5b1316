import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson, TreewardError } from '@treeward/base';

const flag = z.boolean().nullish();
const id = z.int().nonnegative();

/** Of the file, what is read here; the library reads the rest. */
const tokenizerFile = z.looseObject({
  added_tokens: z
    .array(z.looseObject({ id, content: z.string().min(1), lstrip: flag, rstrip: flag, single_word: flag }))
    .min(1, 'is empty: a chat template needs control tokens'),
  model: z.looseObject({ vocab: z.record(z.string(), id) }),
});
const configFile = z.looseObject({ chat_template: z.unknown() });

export type TokenizerFile = z.infer<typeof tokenizerFile>;
export type TokenizerConfigFile = z.infer<typeof configFile>;

export interface TokenizerFiles {
  tokenizer: TokenizerFile;
  config: TokenizerConfigFile;
  chatTemplate: string;
}

/**
 * `tokenizer.json` and `tokenizer_config.json` of a directory, with the chat template of the latter, of
 * `chat_template.jinja` beside it, or of another file (`chatTemplate`).
 *
 * @throws TreewardError FILE_E_MISSING, FILE_E_JSON, TEMPLATE_E_FILE
 */
export function readTokenizerFiles(directory: string, chatTemplate?: string): TokenizerFiles {
  const file = join(directory, 'tokenizer.json');
  const tokenizer = readChecked(file, tokenizerFile);
  const stripping = tokenizer.added_tokens.find(
    ({ lstrip, rstrip, single_word }) => lstrip || rstrip || single_word,
  );
  if (stripping) {
    const { content } = stripping;
    throw badFile(file, 'added_tokens', `${content} swallows the spaces around it, which is not supported`);
  }
  const config = readChecked(join(directory, 'tokenizer_config.json'), configFile);
  return { tokenizer, config, chatTemplate: findChatTemplate(directory, config, chatTemplate) };
}

const badFile = (file: string, field: string, why: string): TreewardError =>
  new TreewardError('TEMPLATE_E_FILE', `${file}: ${field}: ${why}`, { data: { file, field } });

/** The file as it stands. */
function readChecked<T>(file: string, schema: z.ZodType<T>): T {
  const value = readJson<unknown>(file);
  const issue = schema.safeParse(value).error?.issues[0];
  if (issue) throw badFile(file, issue.path.join('.') || '(the whole file)', issue.message);
  return value as T;
}

function findChatTemplate(directory: string, config: TokenizerConfigFile, path?: string): string {
  const beside = path ?? join(directory, 'chat_template.jinja');
  if (path !== undefined || existsSync(beside)) {
    if (!existsSync(beside)) {
      throw new TreewardError('FILE_E_MISSING', `cannot read ${beside}`, { data: { file: beside } });
    }
    return readFileSync(beside, 'utf8');
  }
  if (typeof config.chat_template === 'string') return config.chat_template;
  throw new TreewardError(
    'TEMPLATE_E_FILE',
    `${join(directory, 'tokenizer_config.json')}: no chat_template`,
    {
      data: { file: join(directory, 'tokenizer_config.json'), field: 'chat_template' },
      hints: ['put chat_template.jinja beside it', 'name a file as `chatTemplate` in the template’s spec'],
    },
  );
}
