import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, normalize } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { Step } from './types.js';

/**
 * Does the steps in a directory, as a harness's tools would, and gives what each one returned ('' for write and edit).
 * Commands run under /bin/sh with this process's rights: for our own steps, never for a model's.
 *
 * @throws TreewardError DATASET_E_STEP naming the step, where a harness would have answered with an error
 */
export function applySteps(directory: string, steps: readonly Step[]): string[] {
  return steps.map((step, index) => {
    const refuse = (why: string): never => {
      throw new TreewardError('DATASET_E_STEP', `step ${index} (${JSON.stringify(step)}): ${why}`, {
        data: { step: index },
      });
    };
    const locate = (path: string): string =>
      isAbsolute(path) || normalize(path).startsWith('..')
        ? refuse('the path leaves the workspace')
        : join(directory, path);
    const load = (path: string): string => {
      const full = locate(path);
      return existsSync(full) ? readFileSync(full, 'utf8') : refuse('no such file');
    };
    switch (step.verb) {
      case 'read':
        return load(step.path);
      case 'write': {
        const full = locate(step.path);
        mkdirSync(dirname(full), { recursive: true });
        writeFileSync(full, step.content);
        return '';
      }
      case 'edit': {
        const parts = load(step.path).split(step.old);
        if (step.old === '' || parts.length !== 2) refuse(`the old text occurs ${parts.length - 1} times`);
        writeFileSync(locate(step.path), parts.join(step.new));
        return '';
      }
      case 'exec': {
        const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', step.command], {
          cwd: directory,
          encoding: 'utf8',
          timeout: 10_000,
        });
        if (status !== 0) refuse(`exit ${String(status)}: ${stderr}`);
        return stdout;
      }
    }
  });
}
