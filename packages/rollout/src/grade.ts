import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toPlainError, TreewardError } from '@treeward/base';
import type { RunResult, SandboxProvider } from '@treeward/sandbox';
import { rewardPayload } from './payload.js';
import type { Grade, Grader, Task } from './types.js';
import { parseVerdict, type Verdict } from './verdict.js';

export interface SandboxGraderOptions {
  /** Milliseconds a checker may take. @default 30000 */
  timeout?: number;
}

/** Of checkers tried on their untouched workspace, the most recent. */
const KEPT_TRIALS = 256;

type Outcome = { verdict: Verdict; cpuSeconds: number } | { error: TreewardError };
interface GradeOptions {
  id: string;
  signal?: AbortSignal;
}

/**
 * Runs a task's checker in a second, clean sandbox, as another user: a copy of the workspace as the agent left it, no
 * network, no model socket. The checker's folder stands read-only in place of any `reward/` that the agent made; the
 * payload is read-only too, and Python looks for modules in the checker's folder and its own library only.
 *
 * Where the checker fails, or two different numbers are printed, it is tried on the untouched workspace: if it does there
 * what it should, the rollout broke or forged it, which is the policy's doing and worth 0. Otherwise the checker is at fault.
 */
export class SandboxGrader implements Grader {
  readonly #provider: SandboxProvider;
  readonly #timeout: number;
  readonly #trials = new Map<string, Promise<Outcome>>();

  constructor(provider: SandboxProvider, options: SandboxGraderOptions = {}) {
    this.#provider = provider;
    this.#timeout = options.timeout ?? 30_000;
  }

  async grade(
    task: Task,
    workspace: string,
    payload: Record<string, unknown>,
    options: GradeOptions,
  ): Promise<Grade & { cpuSeconds: number }> {
    let outcome = await this.#judge(task, workspace, payload, options);
    if ('verdict' in outcome && !isDoubtful(outcome.verdict)) return gradeOf(outcome);

    const untouched = await this.#trial(task, options);
    const checkerFails = 'error' in untouched;
    if ('verdict' in outcome) {
      // A checker that prints several numbers by itself is believed by its last.
      if (checkerFails || untouched.verdict.candidates.length > 1) return gradeOf(outcome);
      return broken(outcome.cpuSeconds, {
        code: 'POLICY_E_FORGED_VERDICT',
        message: `several verdicts were printed (${outcome.verdict.candidates.slice(0, 5).join(', ')}); on the untouched workspace there is one`,
      });
    }
    if (checkerFails) throw outcome.error;
    const first = outcome.error;
    outcome = await this.#judge(task, workspace, payload, { ...options, id: `${options.id}-again` });
    if ('verdict' in outcome) return gradeOf(outcome);
    return broken(0, {
      code: 'POLICY_E_BROKE_CHECKER',
      message: `the checker fails on what the rollout left, and not on the untouched workspace: ${first.message}`,
    });
  }

  /** The checker on the workspace that the task starts with and no transcript; once per task. */
  #trial(task: Task, options: GradeOptions): Promise<Outcome> {
    const known = this.#trials.get(task.directory);
    if (known) return known;
    const trial = this.#judge(task, task.inputFiles ?? undefined, rewardPayload(task, null), {
      ...options,
      id: `${options.id}-untouched`,
    });
    this.#trials.set(task.directory, trial);
    trial.catch(() => this.#trials.delete(task.directory)); // no sandbox: says nothing about the checker
    const [oldest] = this.#trials.keys();
    if (this.#trials.size > KEPT_TRIALS && oldest !== undefined) this.#trials.delete(oldest);
    return trial;
  }

  /** @throws TreewardError SANDBOX_E_* when there was no sandbox to judge in */
  async #judge(
    task: Task,
    workspace: string | undefined,
    payload: Record<string, unknown>,
    { id, signal }: GradeOptions,
  ): Promise<Outcome> {
    const checker = join(task.rewardDirectory, 'reward.sh');
    const payloadDirectory = mkdtempSync(join(tmpdir(), `tw-grade-${process.pid}-`));
    const payloadFile = join(payloadDirectory, 'payload.json');
    writeFileSync(payloadFile, JSON.stringify(payload));
    const sandbox = await this.#provider
      .open({
        id: `${id}-verify`,
        ...(workspace !== undefined && { workspaceFrom: workspace }),
        covers: [{ host: task.rewardDirectory, path: 'reward' }],
        mounts: [{ host: payloadFile, inside: payloadFile }],
        user: 'grader',
        network: { kind: 'none' },
        ...(signal ? { signal } : {}),
      })
      .catch((error: unknown) => {
        rmSync(payloadDirectory, { recursive: true, force: true });
        throw error;
      });
    try {
      const result = await sandbox.run(['/bin/sh', 'reward/reward.sh'], {
        timeout: this.#timeout,
        env: { ...ISOLATED, PYTHONPATH: `${sandbox.workspace}/reward`, OPENCLAW_REWARD_PAYLOAD: payloadFile },
        ...(signal ? { signal } : {}),
      });
      assertEnded(result, checker, this.#timeout);
      return { verdict: parseVerdict(result.stdout, checker), cpuSeconds: result.cpuSeconds };
    } catch (error) {
      if (TreewardError.isInstance(error) && toPlainError(error).code.startsWith('VERIFIER_E'))
        return { error };
      throw error;
    } finally {
      await sandbox.destroy();
      rmSync(payloadDirectory, { recursive: true, force: true });
    }
  }
}

/** What keeps Python and git away from anything that the workspace or its user may hold. */
const ISOLATED: Readonly<Record<string, string>> = {
  PYTHONSAFEPATH: '1',
  PYTHONNOUSERSITE: '1',
  PYTHONDONTWRITEBYTECODE: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

const isDoubtful = ({ candidates }: Verdict): boolean => new Set(candidates).size > 1;

const gradeOf = ({ verdict: { reward, scores }, cpuSeconds }: Exclude<Outcome, { error: unknown }>) => ({
  reward,
  scores,
  cpuSeconds,
});

const broken = (cpuSeconds: number, { code, message }: { code: string; message: string }) => ({
  reward: 0,
  scores: {},
  cpuSeconds,
  fault: { kind: 'policy' as const, code, message },
});

function assertEnded(result: RunResult, checker: string, timeout: number): void {
  if (result.timedOut) {
    throw new TreewardError('VERIFIER_E_TIMEOUT', `${checker} took longer than ${timeout} ms`, {
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
}
