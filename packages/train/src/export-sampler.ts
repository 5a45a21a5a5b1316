import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readWeights, writeGguf } from '@treeward/learner';
import type { WeightsRef } from '@treeward/policy';

/** A checkpoint's weights in the sampler's format, written once per content. */
export function exportSampler(checkpoint: string, directory: string): WeightsRef {
  const digest = createHash('sha256')
    .update(readFileSync(join(checkpoint, 'model.safetensors')))
    .digest('hex')
    .slice(0, 16);
  const path = join(directory, `${digest}.gguf`);
  if (!existsSync(path)) {
    const { config, params } = readWeights(checkpoint);
    writeGguf(path, config, params);
  }
  return { format: 'gguf', path };
}
