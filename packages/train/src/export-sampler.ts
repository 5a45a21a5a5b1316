import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readWeights, weightFiles, writeGguf } from '@treeward/learner';
import type { WeightsRef } from '@treeward/policy';

/** A checkpoint's weights in the sampler's format, written once per content. */
export function exportSampler(checkpoint: string, directory: string): WeightsRef {
  const hash = createHash('sha256');
  for (const file of weightFiles(checkpoint)) hash.update(readFileSync(join(checkpoint, file)));
  const path = join(directory, `${hash.digest('hex').slice(0, 16)}.gguf`);
  if (!existsSync(path)) {
    const { config, params } = readWeights(checkpoint);
    writeGguf(path, config, params);
  }
  return { format: 'gguf', path };
}
