// Writes datasets/tasks/sample/ anew: npx nx run datasets:sample
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sampleTasks } from './sample.js';
import { writeSolutions } from './write-solutions.js';
import { writeTasks } from './write-task.js';

const directory = fileURLToPath(new URL('../tasks/sample', import.meta.url));
rmSync(directory, { recursive: true, force: true });
const tasks = sampleTasks();
const paths = writeTasks(directory, tasks);
tasks.forEach((task, at) => writeSolutions(task, paths[at]!));
process.stdout.write(`${paths.length} tasks in ${directory}\n`);
