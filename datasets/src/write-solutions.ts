import { join } from 'node:path';
import { writeJsonAtomic } from '@treeward/base';
import { FINAL_TEXT } from './demonstrate.js';
import type { GeneratedTask } from './types.js';

/**
 * `solution/` of a written task: `reference.json` earns 1, each of `wrong/` less. It stays outside every sandbox; `treeward tasks check` and
 * scripted policies read it.
 */
export function writeSolutions(task: GeneratedTask, directory: string): void {
  const solution = join(directory, 'solution');
  writeJsonAtomic(join(solution, 'reference.json'), { steps: task.oracle, final_message: FINAL_TEXT });
  task.flaws.forEach((steps, at) =>
    writeJsonAtomic(join(solution, 'wrong', `flaw-${at + 1}.json`), {
      why: 'a flaw of the family, as its own tests name it',
      steps,
      final_message: FINAL_TEXT,
    }),
  );
}
