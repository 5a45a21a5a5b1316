import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { HOLD_MS } from '@treeward/gateway';
import type { FileChange, Sandbox } from '@treeward/sandbox';
import { readRecord } from '@treeward/telemetry';
import { rewardPayload } from './payload.js';
import type { Grader, StateScores, Task } from './types.js';

/** Of grades that other rollouts of a task may share, the most recent. */
const KEPT_GRADES = 1024;

/** The workspace at one moment. */
interface State {
  /** Equal for equal contents; null where a file was too large to be hashed. */
  key: string | null;
  /** Null: it could not be copied. */
  directory: string | null;
}

interface Look {
  call: number;
  state: State;
  time: number;
}

/** Copies of a rollout's workspace as its calls found it, one for each time it had changed. */
export class WorkspaceStates {
  readonly #sandbox: Pick<Sandbox, 'exportWorkspace'>;
  readonly #root: string;
  readonly #looks: Look[] = [];

  constructor(sandbox: Pick<Sandbox, 'exportWorkspace'>, root: string) {
    this.#sandbox = sandbox;
    this.#root = root;
  }

  /** At the arrival of `call`, before its reply is let go. `all`: what differs from the task's workspace. Never throws. */
  async look(call: number, all: readonly FileChange[], changed: boolean): Promise<void> {
    const last = this.#looks.at(-1)?.state;
    const state = changed || last === undefined ? await this.#copy(all) : last;
    this.#looks.push({ call, state, time: Date.now() });
  }

  /**
   * What each call found. The gateway holds a reply for HOLD_MS while nobody has acknowledged its call: a look that ended
   * within that time saw nothing that the reply caused, and whether it did depends on the copying alone, never on what was
   * sampled. `late`: nobody looked in time, so its own reply may be in what was seen.
   */
  found(arrivals: readonly number[]): (State | 'late')[] {
    return arrivals.map((arrival, call) => {
      const look = this.#looks.find((candidate) => candidate.call >= call);
      return look !== undefined && look.time <= arrival + HOLD_MS ? look.state : 'late';
    });
  }

  async #copy(all: readonly FileChange[]): Promise<State> {
    const directory = join(this.#root, String(this.#looks.length));
    try {
      mkdirSync(directory, { recursive: true });
      await this.#sandbox.exportWorkspace(directory);
      return { key: keyOf(all), directory };
    } catch {
      return { key: null, directory: null }; // costs this state's grade, nothing else
    }
  }
}

function keyOf(all: readonly FileChange[]): string | null {
  if (all.some(({ kind, sha256 }) => (kind === 'create' || kind === 'modify') && sha256 === undefined))
    return null;
  const hash = createHash('sha256');
  for (const { path, kind, mode, sha256, target } of all)
    hash.update(JSON.stringify([path, kind, mode, sha256 ?? '', target ?? '']));
  return hash.digest('hex');
}

/** Grades workspaces as calls found them: the checker in its own clean sandbox, after the rollout has ended. */
export class StateGrader {
  readonly #grader: Grader;
  readonly #grades = new Map<string, Promise<number>>();

  constructor(grader: Grader) {
    this.#grader = grader;
  }

  /**
   * The workspace alone is judged, without a transcript, so that equal workspaces of a task's rollouts share a grade. What
   * cannot be graded for a reason of ours is tried once more and is unknown then, never 0.
   *
   * @param directory the rollout's, with its record
   */
  async grade(
    task: Task,
    states: WorkspaceStates,
    directory: string,
    options: { id: string; signal?: AbortSignal },
  ): Promise<StateScores> {
    const started = performance.now();
    const scores: StateScores = { score_C: [], graded: 0, late: 0, failed: 0, cpuSeconds: 0, ms: 0 };
    const own = new Map<State, number | null>();
    for (const state of states.found(arrivalsOf(directory))) {
      if (state !== 'late' && !own.has(state)) {
        own.set(
          state,
          await this.#one(task, state, scores, { ...options, id: `${options.id}-state${own.size}` }),
        );
      }
      const score = state === 'late' ? null : own.get(state)!;
      scores.score_C.push(score);
      if (state === 'late') scores.late++;
      else if (score === null) scores.failed++;
    }
    scores.ms = Math.round(performance.now() - started);
    return scores;
  }

  async #one(
    task: Task,
    { key, directory }: State,
    scores: StateScores,
    options: { id: string; signal?: AbortSignal },
  ): Promise<number | null> {
    if (directory === null) return null;
    const name = key === null ? null : `${task.directory} ${key}`;
    for (let tries = 0; tries < 2; tries++) {
      const known = name === null ? undefined : this.#grades.get(name);
      const grade = known ?? this.#judge(task, directory, scores, options);
      if (name !== null && !known) this.#keep(name, grade);
      try {
        return await grade;
      } catch (error) {
        if (options.signal?.aborted) throw error;
      }
    }
    return null;
  }

  async #judge(
    task: Task,
    directory: string,
    scores: StateScores,
    options: { id: string; signal?: AbortSignal },
  ): Promise<number> {
    const { reward, cpuSeconds } = await this.#grader.grade(
      task,
      directory,
      rewardPayload(task, null),
      options,
    );
    scores.graded++;
    scores.cpuSeconds += cpuSeconds;
    return reward;
  }

  #keep(name: string, grade: Promise<number>): void {
    this.#grades.set(name, grade);
    grade.catch(() => this.#grades.delete(name));
    const [oldest] = this.#grades.keys();
    if (this.#grades.size > KEPT_GRADES && oldest !== undefined) this.#grades.delete(oldest);
  }
}

/** When each call of a record arrived. */
function arrivalsOf(directory: string): number[] {
  const arrivals: number[] = [];
  for (const event of readRecord(directory).events)
    if (event.type === 'call.start') arrivals[event.call] = event.time;
  return arrivals;
}
