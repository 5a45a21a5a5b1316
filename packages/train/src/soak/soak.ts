import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { benchMachine, writeJsonAtomic, type RunFolder } from '@treeward/base';
import { type TemplateSpec } from '@treeward/policy';
import { memoryAvailable, type RolloutResult } from '@treeward/rollout';
import type { SandboxCounters, SandboxProvider } from '@treeward/sandbox';
import { Stack } from '../processes/stack.js';
import { lockRun } from '../run-lock.js';
import { stackPool } from '../stack-pool.js';
import { cpuUse } from './cpu-account.js';
import { inventory, openFiles } from './inventory.js';
import { planSoak, scriptsOf, type SoakShape } from './soak-plan.js';

export interface SoakOptions extends SoakShape {
  template: TemplateSpec;
  concurrency: number;
  sandboxes: SandboxProvider & { counters(): SandboxCounters; close(): Promise<void> };
  onDone?: (result: RolloutResult, done: number) => void;
  signal?: AbortSignal;
}

export interface SoakReport {
  machine: Record<string, unknown>;
  rollouts: number;
  /** Of them, finished by earlier processes. */
  found: number;
  harnesses: Readonly<Record<string, number>>;
  concurrency: number;
  /** Most in flight together: fewer than `concurrency` where memory did not admit more. */
  atOnce: number;
  /** Least memory that could be had while they ran, and before. */
  availableMiB: { least: number; before: number };
  provider: string;
  seconds: number;
  perSecond: number;
  rewards: { known: number; mean: number };
  faults: Record<string, number>;
  /** By name: what was still there when nothing ran any more. */
  leaks: string[];
  counters: Omit<SandboxCounters, 'time'>;
  createMs: { p50: number; p90: number };
  /** Open files and resident MiB of this process, before and after. */
  openFiles: [number, number];
  residentMiB: [number, number];
  /**
   * Mean milliseconds of CPU per rollout of this process. `added`: all but the harness's and the grader's own; null, as
   * `sandbox` is, where sandboxes are no children of this process (Docker's daemon starts them): what they cost is not seen.
   */
  cpuMs:
    | (Record<'controller' | 'gateway' | 'engine' | 'harness' | 'grader', number> &
        Record<'added' | 'sandbox', number | null>)
    | null;
}

/**
 * Many rollouts one after another with a scripted policy, to see what is left behind and what each costs. What an earlier
 * process finished in the same folder is not run again.
 */
export async function soak(run: RunFolder, options: SoakOptions): Promise<SoakReport> {
  const { sandboxes, concurrency, signal } = options;
  mkdirSync(run.root, { recursive: true });
  const unlock = lockRun(run.root);
  const stack = new Stack({
    runDirectory: run.root,
    template: options.template,
    engine: { kind: 'scripted', scripts: scriptsOf(run), template: options.template },
  });
  try {
    await sandboxes.sweep();
    const specs = planSoak(run, options);
    const found = specs.filter(({ rolloutId }) => existsSync(run.rollout(rolloutId).result)).length;
    await stack.start();
    const pool = stackPool(stack, sandboxes, run, { concurrency });
    const before = {
      cpu: cpuUse(stack.pids()),
      files: openFiles(),
      resident: residentMiB(),
      time: Date.now(),
    };
    const available = { before: availableMiB(), least: availableMiB() };
    const looking = setInterval(() => {
      available.least = Math.min(available.least, availableMiB());
    }, 250);
    let done = 0;
    const fresh: RolloutResult[] = [];
    const wasThere = new Set(
      specs.flatMap(({ rolloutId }) => (existsSync(run.rollout(rolloutId).result) ? [rolloutId] : [])),
    );
    const results = await pool
      .run(
        specs,
        (result) => {
          if (!wasThere.has(result.rolloutId)) fresh.push(result);
          options.onDone?.(result, ++done);
        },
        signal ? { signal } : {},
      )
      .finally(() => clearInterval(looking));
    const seconds = (Date.now() - before.time) / 1000;
    const after = cpuUse(stack.pids());
    await pool.close();
    await sandboxes.close();
    const leaks = inventory(stack.socketRoot);
    const { time, ...counters } = sandboxes.counters();
    const known = results.flatMap(({ reward }) => (reward === null ? [] : [reward]));
    const faults: Record<string, number> = {};
    for (const { fault } of results) if (fault) faults[fault.code] = (faults[fault.code] ?? 0) + 1;
    const report: SoakReport = {
      machine: benchMachine(),
      rollouts: results.length,
      found,
      harnesses: options.harnesses,
      concurrency,
      atOnce: pool.most,
      availableMiB: available,
      provider: sandboxes.name,
      seconds,
      perSecond: fresh.length / seconds,
      rewards: { known: known.length, mean: known.reduce((a, b) => a + b, 0) / Math.max(1, known.length) },
      faults,
      leaks,
      counters,
      createMs: { p50: time.create.p50, p90: time.create.p90 },
      openFiles: [before.files, openFiles()],
      residentMiB: [before.resident, residentMiB()],
      cpuMs: perRollout(before.cpu, after, fresh, sandboxes.name !== 'docker'),
    };
    if (!signal?.aborted) writeJsonAtomic(join(run.root, 'soak.json'), report);
    return report;
  } finally {
    await stack.close();
    await sandboxes.sweep();
    unlock();
  }
}

const availableMiB = (): number => Math.round(memoryAvailable() / 1024 ** 2);
const residentMiB = (): number => Math.round(process.memoryUsage.rss() / 1024 ** 2);

function perRollout(
  before: ReturnType<typeof cpuUse>,
  after: ReturnType<typeof cpuUse>,
  fresh: readonly RolloutResult[],
  areChildren: boolean,
): SoakReport['cpuMs'] {
  if (fresh.length === 0) return null;
  const used = (name: keyof typeof before): number => (after[name] - before[name]) / fresh.length;
  const mean = (of: 'harness' | 'verifier'): number =>
    (fresh.reduce((sum, { cpuSeconds }) => sum + cpuSeconds[of], 0) * 1000) / fresh.length;
  const [harness, grader] = [mean('harness'), mean('verifier')];
  const own = { controller: used('controller'), gateway: used('gateway'), engine: used('engine') };
  const sandbox = areChildren ? used('children') - harness - grader : null;
  const added = sandbox === null ? null : own.controller + own.gateway + own.engine + sandbox;
  return { added, ...own, sandbox, harness, grader };
}
