// Writes datasets/tasks/sample/ anew: npx nx run datasets:sample
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sampleTasks } from './sample.js';
import { writeTasks } from './write-task.js';

const directory = fileURLToPath(new URL('../tasks/sample', import.meta.url));
rmSync(directory, { recursive: true, force: true });
process.stdout.write(`${writeTasks(directory, sampleTasks()).length} tasks in ${directory}\n`);
