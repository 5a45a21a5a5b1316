import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readTensors, writeTensors, type NamedTensor } from '@treeward/base';

/**
 * Averages the float tensors of several checkpoints into one folder: local SGD. Learners on different data, averaged every few
 * steps (weights and optimizer moments), learn nearly as from one batch of the sum, and each keeps a core to itself.
 */
export function averageCheckpoints(folders: readonly string[], into: string): void {
  for (const file of ['model.safetensors', 'optimizer.safetensors']) {
    if (!existsSync(join(folders[0]!, file))) continue;
    const files = folders.map((folder) => readTensors(join(folder, file)));
    const averaged = new Map<string, NamedTensor>();
    for (const [name, { shape, data }] of files[0]!.tensors) {
      if (!(data instanceof Float32Array)) {
        averaged.set(name, { shape, data });
        continue;
      }
      const sum = new Float32Array(data.length);
      for (const { tensors } of files) {
        const other = tensors.get(name)!.data;
        for (let i = 0; i < sum.length; i++) sum[i]! += other[i]! / files.length;
      }
      averaged.set(name, { shape, data: sum });
    }
    writeTensors(join(into, file), averaged, files[0]!.metadata);
  }
}
