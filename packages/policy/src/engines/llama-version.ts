import { readJson } from '@treeward/base';
import { fileURLToPath } from 'node:url';

/** Version of the installed node-llama-cpp, without loading it. */
export function llamaVersion(): string {
  const manifest = fileURLToPath(new URL('../package.json', import.meta.resolve('node-llama-cpp')));
  return readJson<{ version: string }>(manifest).version;
}
