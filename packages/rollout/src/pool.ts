import { rmSync } from 'node:fs';
import { runRollout, type RolloutDeps } from './run-rollout.js';
import { adapterByName } from '@treeward/harness-adapters';
import { DEFAULT_LIMITS } from '@treeward/sandbox';
import { MemoryAdmission, type AdmissionOptions, type MemoryNeed } from './admission.js';
import { FAULTS } from './faults.js';
import type { RolloutQueue, RolloutResult, RolloutSpec } from './types.js';

export interface RolloutPoolOptions {
  /** Rollouts in flight. @default 6 */
  concurrency?: number;
  /** Rollouts in flight of one harness, where it weighs more than others (memory, start-up CPU). */
  perHarness?: Readonly<Record<string, number>>;
  /** How memory bounds them too. */
  memory?: AdmissionOptions;
  /** Times an infrastructure failure is tried again before the rollout is left out. @default 2 */
  retries?: number;
}

/** The in-process queue: workers of this process, heavy harnesses bounded apart so that they cannot fill the machine. */
export class RolloutPool implements RolloutQueue {
  readonly #deps: RolloutDeps;
  readonly #concurrency: number;
  readonly #perHarness: Readonly<Record<string, number>>;
  readonly #retries: number;
  readonly #memory: AdmissionOptions;
  #most = 0;

  constructor(deps: RolloutDeps, options: RolloutPoolOptions = {}) {
    this.#deps = deps;
    this.#concurrency = options.concurrency ?? 6;
    this.#perHarness = options.perHarness ?? {};
    this.#retries = options.retries ?? 2;
    this.#memory = options.memory ?? {};
  }

  /** Most rollouts that were in flight together so far. */
  get most(): number {
    return this.#most;
  }

  /**
   * Results come back in the order of `specs`; `onDone` is called in the order of completion.
   * @throws TreewardError the reason why the model is lost, after what was in flight has ended
   */
  async run(
    specs: readonly RolloutSpec[],
    onDone: (result: RolloutResult) => void,
    options: { signal?: AbortSignal } = {},
  ): Promise<RolloutResult[]> {
    const results = new Array<RolloutResult>(specs.length);
    const waiting = specs.map((_, index) => index);
    const running = new Map<string, number>();
    const admission = new MemoryAdmission(this.#memory);
    const needs = new Map(
      [...new Set(specs.map(({ harness }) => harness))].map((name) => [name, memoryOf(name)]),
    );
    let inFlight = 0;
    const lost = this.#deps.model?.lost;
    const signals = [options.signal, lost].filter((one) => one !== undefined);
    const signal = signals.length > 0 ? AbortSignal.any(signals) : undefined;

    await new Promise<void>((resolve, reject) => {
      const next = (): void => {
        if (waiting.length === 0 && inFlight === 0) return resolve();
        while (inFlight < this.#concurrency) {
          const at = waiting.findIndex((index) => {
            const harness = specs[index]!.harness;
            return (
              (running.get(harness) ?? 0) < (this.#perHarness[harness] ?? Infinity) &&
              admission.admits(needs.get(harness)!)
            );
          });
          if (at < 0) return;
          const [index] = waiting.splice(at, 1) as [number];
          const spec = specs[index]!;
          inFlight++;
          this.#most = Math.max(this.#most, inFlight);
          admission.enter(needs.get(spec.harness)!);
          running.set(spec.harness, (running.get(spec.harness) ?? 0) + 1);
          this.#one(spec, signal)
            .then((result) => {
              results[index] = result;
              onDone(result);
            })
            .finally(() => {
              inFlight--;
              admission.leave(needs.get(spec.harness)!);
              running.set(spec.harness, running.get(spec.harness)! - 1);
            })
            .then(next, reject);
        }
      };
      next();
    });
    if (!options.signal?.aborted) lost?.throwIfAborted();
    return results;
  }

  async #one(spec: RolloutSpec, signal?: AbortSignal): Promise<RolloutResult> {
    for (let tries = 0; ; tries++) {
      const result = await runRollout(spec, this.#deps, signal);
      const again = result.fault !== null && FAULTS[result.fault.kind].then === 'retry';
      if (signal?.aborted) {
        rmSync(this.#deps.folder(spec.rolloutId).root, { recursive: true, force: true });
        return result;
      }
      if (!again || tries >= this.#retries) return result;
      rmSync(this.#deps.folder(spec.rolloutId).root, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    // Nothing is held between runs.
  }
}

/** What the sandbox of a harness needs; an unknown one fails by itself and needs nothing. */
function memoryOf(harness: string): MemoryNeed {
  try {
    const { limits, usualMemory } = adapterByName(harness);
    const limit = limits?.memory ?? DEFAULT_LIMITS.memory;
    return { limit, usual: usualMemory ?? limit / 2 };
  } catch {
    return { limit: 0, usual: 0 };
  }
}
