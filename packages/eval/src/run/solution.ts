import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readJson, TreewardError } from '@treeward/base';

const step = z.discriminatedUnion('verb', [
  z.object({ verb: z.literal('read'), path: z.string() }),
  z.object({ verb: z.literal('write'), path: z.string(), content: z.string() }),
  z.object({ verb: z.literal('edit'), path: z.string(), old: z.string(), new: z.string() }),
  z.object({ verb: z.literal('exec'), command: z.string() }),
]);
const schema = z.object({
  steps: z.array(step),
  final_message: z.string().optional(),
  /** Of wrong solutions: what is wrong with it. */
  why: z.string().optional(),
});

export type Solution = z.infer<typeof schema>;
export type SolutionStep = Solution['steps'][number];

/** @throws TreewardError TASK_E_SOLUTION naming the file and field */
export function readSolution(file: string): Solution {
  const parsed = schema.safeParse(readJson<unknown>(file));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new TreewardError(
    'TASK_E_SOLUTION',
    `${file}: field ${issue.path.join('.') || '(the file)'}: ${issue.message}`,
    {
      data: { file, field: issue.path.join('.') },
    },
  );
}

/** The reference solution of a task, where its set has one: in the task's own folder, or beside a PinchBench set's `tasks/`. */
export function referenceOf(task: { id: string; source: string }): Solution | null {
  const files = [
    join(task.source, 'solution', 'reference.json'),
    join(dirname(task.source), '..', 'solutions', `${task.id}.json`),
  ];
  const file = files.find((path) => existsSync(path));
  return file === undefined ? null : readSolution(file);
}
