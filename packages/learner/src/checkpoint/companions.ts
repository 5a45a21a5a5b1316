import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** What readers of a checkpoint need beside weights: tokenizer, chat template, generation defaults. */
const COMPANIONS = [
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'vocab.json',
  'merges.txt',
  'chat_template.jinja',
  'generation_config.json',
];

/** Copies those that `from` has. */
export function copyCompanions(from: string, to: string): void {
  if (resolve(from) === resolve(to)) return;
  mkdirSync(to, { recursive: true });
  for (const name of COMPANIONS) {
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name));
  }
}
