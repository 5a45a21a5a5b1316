import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { TreewardError } from '@treeward/base';
import type { Sandbox, SandboxProvider } from '@treeward/sandbox';
import type { Grade, Grader, Task } from './types.js';

export interface SandboxGraderOptions {
  /** Milliseconds a checker may take. @default 30000 */
  timeout?: number;
}

const PAYLOAD = '/tmp/reward-payload.json';

function filesBelow(root: string, at = root): string[] {
  return readdirSync(at).flatMap((name) => {
    const path = join(at, name);
    const stat = lstatSync(path);
    if (stat.isDirectory()) return filesBelow(root, path);
    return stat.isFile() ? [relative(root, path)] : [];
  });
}

/**
 * The checker's verdict from what it printed: the last line is a number in [0,1]; a JSON object on an earlier line holds
 * the named sub-scores.
 * @throws TreewardError VERIFIER_E_NO_NUMBER, VERIFIER_E_RANGE
 */
export function parseVerdict(stdout: string, checker: string): Grade {
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  const last = lines.at(-1)?.trim() ?? '';
  const reward = last === '' ? Number.NaN : Number(last);
  if (!Number.isFinite(reward)) {
    throw new TreewardError(
      'VERIFIER_E_NO_NUMBER',
      `${checker}: its last output line is not a number: ${JSON.stringify(last.slice(0, 120))}`,
      {
        data: { file: checker },
        hints: ['print one number in [0,1] as the last line; everything else before it'],
      },
    );
  }
  if (reward < 0 || reward > 1) {
    throw new TreewardError('VERIFIER_E_RANGE', `${checker}: reward ${reward} is outside [0,1]`, {
      data: { file: checker },
    });
  }
  const scores: Record<string, number> = {};
  for (const line of lines.slice(0, -1)) {
    if (!line.trim().startsWith('{')) continue;
    try {
      for (const [name, value] of Object.entries(JSON.parse(line) as Record<string, unknown>)) {
        if (typeof value === 'number' || typeof value === 'boolean') scores[name] = Number(value);
      }
    } catch {
      // Not JSON: a line the checker printed for people.
    }
  }
  return { reward, scores };
}

/**
 * Runs a task's checker in a second, clean sandbox: a copy of the workspace as the agent left it, no network, no model
 * socket. The checker and the payload enter only here, after the agent has ended; a `reward/` the agent made is removed first.
 */
export class SandboxGrader implements Grader {
  readonly #provider: SandboxProvider;
  readonly #timeout: number;

  constructor(provider: SandboxProvider, options: SandboxGraderOptions = {}) {
    this.#provider = provider;
    this.#timeout = options.timeout ?? 30_000;
  }

  async grade(
    task: Task,
    workspace: string,
    payload: Record<string, unknown>,
    options: { id: string; signal?: AbortSignal },
  ): Promise<Grade & { cpuSeconds: number }> {
    const checker = join(task.rewardDirectory, 'reward.sh');
    const sandbox = await this.#provider.open({
      id: `${options.id}-verify`,
      workspaceFrom: workspace,
      network: { kind: 'none' },
      ...(options.signal ? { signal: options.signal } : {}),
    });
    try {
      return await this.#run(sandbox, task, checker, payload, options.signal);
    } finally {
      await sandbox.destroy();
    }
  }

  async #run(
    sandbox: Sandbox,
    task: Task,
    checker: string,
    payload: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<Grade & { cpuSeconds: number }> {
    await sandbox.run(['/bin/rm', '-rf', '--', 'reward']);
    for (const file of filesBelow(task.rewardDirectory)) {
      await sandbox.write(
        `${sandbox.workspace}/reward/${file}`,
        readFileSync(join(task.rewardDirectory, file)),
        { mode: 0o755 },
      );
    }
    await sandbox.write(PAYLOAD, JSON.stringify(payload));
    const result = await sandbox.run(['/bin/sh', 'reward/reward.sh'], {
      timeout: this.#timeout,
      env: { OPENCLAW_REWARD_PAYLOAD: PAYLOAD, PYTHONDONTWRITEBYTECODE: '1' },
      ...(signal ? { signal } : {}),
    });
    if (result.timedOut) {
      throw new TreewardError('VERIFIER_E_TIMEOUT', `${checker} took longer than ${this.#timeout} ms`, {
        data: { file: checker },
      });
    }
    if (result.code !== 0) {
      throw new TreewardError(
        'VERIFIER_E_EXIT',
        `${checker} ended with code ${result.code ?? result.signal}: ${result.stderr.trim().slice(-400)}`,
        {
          data: { file: checker, stderr: result.stderr.slice(-2000) },
        },
      );
    }
    return { ...parseVerdict(result.stdout, checker), cpuSeconds: result.cpuSeconds };
  }
}
