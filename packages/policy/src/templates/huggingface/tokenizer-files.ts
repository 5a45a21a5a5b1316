import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, TreewardError } from '@treeward/base';

interface AddedToken {
  id: number;
  content: string;
  special?: boolean;
  lstrip?: boolean;
  rstrip?: boolean;
  single_word?: boolean;
}

export interface TokenizerFile {
  added_tokens: AddedToken[];
  model: { vocab: Record<string, number> };
}

export type TokenizerConfigFile = Record<string, unknown> & { chat_template?: unknown };

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
  const tokenizer = readJson<TokenizerFile>(file);
  const bad = (why: string): TreewardError =>
    new TreewardError('TEMPLATE_E_FILE', `${file}: ${why}`, { data: { file } });
  if (!Array.isArray(tokenizer.added_tokens) || tokenizer.added_tokens.length === 0) {
    throw bad('no added_tokens: a chat template needs control tokens');
  }
  if (typeof tokenizer.model?.vocab !== 'object') throw bad('no model.vocab');
  const stripping = tokenizer.added_tokens.find(
    ({ lstrip, rstrip, single_word }) => lstrip || rstrip || single_word,
  );
  if (stripping)
    throw bad(`added token ${stripping.content} swallows the spaces around it, which is not supported`);
  const config = readJson<TokenizerConfigFile>(join(directory, 'tokenizer_config.json'));
  return { tokenizer, config, chatTemplate: findChatTemplate(directory, config, chatTemplate) };
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
