import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { Sandbox } from '@treeward/sandbox';
import { bytesOf } from '../formats/materialise.js';
import { filesBelow } from '../formats/files-below.js';
import { rewriteFile } from '../formats/workspace-paths.js';
import { readSolution, referenceOf, type SolutionStep } from '../run/solution.js';
import type { EvalTask } from '../types.js';

/** A way to solve a task, right or wrong: played inside a sandbox, never on this machine. */
export interface Play {
  name: string;
  why: string;
  finalMessage: string;
  /** @throws TreewardError TASK_E_SOLUTION when a step cannot be done */
  run(sandbox: Sandbox): Promise<void>;
}

const TIMEOUT = 120_000;

/** The reference solution: steps, a folder of files, or a script (`solution/solve.sh`, as Harbor has it). Null for none. */
export function referencePlay(task: EvalTask): Play | null {
  const steps = referenceOf(task);
  if (steps) return stepsPlay('reference', '', steps);
  const directory = join(task.source, 'solution');
  const files = join(directory, 'files');
  const script = join(directory, 'solve.sh');
  if (!existsSync(files) && !existsSync(script)) return null;
  return {
    name: 'reference',
    why: '',
    finalMessage: '',
    run: async (sandbox) => {
      for (const file of existsSync(files) ? filesBelow(files) : []) {
        await sandbox.write(`${sandbox.workspace}/${file.path}`, bytesOf(file));
      }
      if (existsSync(script)) {
        const { file } = rewriteFile({ path: 'solve.sh', content: { from: script } });
        const text = workdirRewritten(bytesOf(file).toString('utf8'), task);
        await sandbox.write('/tmp/solution/solve.sh', text, { mode: 0o755 });
        await must(sandbox, ['/bin/bash', '/tmp/solution/solve.sh'], 'solution/solve.sh');
      }
    },
  };
}

/** `solution/wrong/<name>.json`. */
export function wrongPlays(task: EvalTask): Play[] {
  const directory = join(task.source, 'solution', 'wrong');
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const solution = readSolution(join(directory, name));
      return stepsPlay(basename(name, '.json'), solution.why ?? '', solution);
    });
}

function workdirRewritten(text: string, task: EvalTask): string {
  const harbor = task.metadata['harbor'] as { workdir?: string } | undefined;
  return harbor?.workdir
    ? text.replaceAll(new RegExp(`${harbor.workdir}(?=[/\\s"';]|$)`, 'gm'), '/workspace')
    : text;
}

function stepsPlay(
  name: string,
  why: string,
  solution: { steps: SolutionStep[]; final_message?: string | undefined },
): Play {
  return {
    name,
    why,
    finalMessage: solution.final_message ?? '',
    run: async (sandbox) => {
      for (const step of solution.steps) await playStep(sandbox, step);
    },
  };
}

async function playStep(sandbox: Sandbox, step: SolutionStep): Promise<void> {
  const at = (path: string): string => `${sandbox.workspace}/${path}`;
  switch (step.verb) {
    case 'read':
      await sandbox.read(at(step.path));
      return;
    case 'write':
      await sandbox.write(at(step.path), step.content);
      return;
    case 'edit': {
      const text = Buffer.from(await sandbox.read(at(step.path))).toString('utf8');
      if (!text.includes(step.old)) {
        throw new TreewardError('TASK_E_SOLUTION', `the edit of ${step.path}: its old text is not there`, {
          data: { file: step.path },
        });
      }
      await sandbox.write(
        at(step.path),
        text.replace(step.old, () => step.new),
      );
      return;
    }
    case 'exec':
      await must(sandbox, ['/bin/sh', '-c', step.command], step.command);
  }
}

async function must(sandbox: Sandbox, argv: readonly string[], what: string): Promise<void> {
  const run = await sandbox.run(argv, { timeout: TIMEOUT });
  if (run.code !== 0) {
    throw new TreewardError(
      'TASK_E_SOLUTION',
      `${what.slice(0, 120)} ended with ${run.timedOut ? 'its time limit' : `code ${run.code ?? run.signal}`}: ${run.stderr.slice(-200)}`,
    );
  }
}

/** Text of every checker file that is text, by path. */
export const checkerTexts = (task: EvalTask): Map<string, string> =>
  new Map(
    task.grading.reward.flatMap((file): [string, string][] => {
      const bytes =
        typeof file.content === 'object' && 'from' in file.content
          ? readFileSync(file.content.from)
          : bytesOf(file);
      return bytes.subarray(0, 8192).includes(0) ? [] : [[file.path, bytes.toString('utf8')]];
    }),
  );
