import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TreewardError } from '@treeward/base';

const NEEDED = ['model.safetensors', 'config.json', 'tokenizer.json'];

/**
 * A policy's folder: as named from here, else from Treeward's own root (so that the shipped `datasets/cold-start` is found from
 * anywhere). @throws TreewardError CHECKPOINT_E_MISSING naming the file that is not there
 */
export function checkpointFolder(path: string, field: string): string {
  const home = fileURLToPath(new URL('../../../', import.meta.url));
  const folder =
    [resolve(path), join(home, path)].find((candidate) => existsSync(candidate)) ?? resolve(path);
  const missing = NEEDED.find((file) => !existsSync(join(folder, file)));
  if (missing === undefined) return folder;
  throw new TreewardError('CHECKPOINT_E_MISSING', `${field} ${folder} has no ${missing}`, {
    data: { file: join(folder, missing), field },
    hints: [
      '`treeward cold-start --help` shows how the embedded default is made',
      `or name a folder with ${NEEDED.join(', ')}`,
    ],
  });
}
