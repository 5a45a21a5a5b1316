// Writes datasets/sets/{base,hard} anew: npx nx run datasets:sets
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { writeSet } from './sets/write-set.js';

for (const level of ['base', 'hard'] as const) {
  const directory = fileURLToPath(new URL(`../sets/${level}`, import.meta.url));
  rmSync(directory, { recursive: true, force: true });
  process.stdout.write(`${writeSet(level, directory).length} tasks in ${directory}\n`);
}
