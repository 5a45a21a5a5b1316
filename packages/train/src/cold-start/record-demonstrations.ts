import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomStream, writeFileAtomic, type RunFolder } from '@treeward/base';
import { demonstrationTask, writeTaskDirectory, type Plan } from '@treeward/datasets';
import { adapterByName, requireInstalled } from '@treeward/harness-adapters';
import type { RolloutSpec } from '@treeward/rollout';
import type { SandboxProvider } from '@treeward/sandbox';
import { writeScript } from '../demonstrator.js';
import { mean } from '../metrics.js';
import { duration, type Progress } from '../progress.js';
import { Stack } from '../processes/stack.js';
import { stackPool } from '../stack-pool.js';

export interface RecordOptions {
  tokenizer: string;
  /** Tasks by harness; each is demonstrated in two or three plans. */
  counts: Readonly<Record<string, number>>;
  seed: number;
  sandboxes: SandboxProvider;
  concurrency: number;
  perHarness: Readonly<Record<string, number>>;
  signal?: AbortSignal;
}

const PLANS: readonly Plan[] = ['clean', 'dominant', 'other'];

/** What a demonstration was of: enough to make its task again. One line per demonstration in `demonstrations.jsonl`. */
export interface DemonstrationEntry {
  rolloutId: string;
  harness: string;
  /** Its task: `taskById`. */
  task: string;
  plan: Plan;
}

export const indexFile = (run: RunFolder): string => join(run.root, 'demonstrations.jsonl');

export function readIndex(run: RunFolder): DemonstrationEntry[] {
  return readFileSync(indexFile(run), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as DemonstrationEntry);
}

/**
 * A scripted demonstrator plays through the real harnesses: what the policy will later read (tool results, reminders, error
 * texts) is what these CLIs really say. Resumable: finished rollouts are not run again.
 */
export async function recordDemonstrations(
  run: RunFolder,
  options: RecordOptions,
  progress: Progress,
): Promise<void> {
  const { sandboxes } = options;
  await sandboxes.sweep();
  for (const harness of Object.keys(options.counts)) await requireInstalled(adapterByName(harness));
  const scripts = join(run.root, 'scripts');
  const template = { kind: 'compact', tokenizer: options.tokenizer } as const;
  const stack = new Stack({
    runDirectory: run.root,
    template,
    engine: { kind: 'scripted', scripts, template },
  });
  const specs: RolloutSpec[] = [];
  const entries: DemonstrationEntry[] = [];
  for (const [harness, count] of Object.entries(options.counts)) {
    for (let k = 0; k < count; k++) {
      // Numbered within the harness, so that more of one harness can be added later without changing the others.
      const task = demonstrationTask(k, `${options.seed}/${harness}`);
      // Every task is played clean and with its family's habit (and, some, otherwise flawed): were each task seen in one plan
      // only, the policy would learn by heart which plan goes with which task, and a group of rollouts would hold no contrast.
      for (const plan of k % 5 === 0 ? PLANS : PLANS.slice(0, 2)) {
        const rolloutId = `demo-${harness}-${String(k).padStart(5, '0')}-${plan}`;
        const directory = join(run.root, 'tasks', `${harness}-${task.id}`);
        if (!existsSync(join(directory, 'reward'))) writeTaskDirectory(task, directory);
        const mixture = { clean: 0, dominant: 0, other: 0, [plan]: 1 };
        writeScript(scripts, rolloutId, task, harness, { seed: `${options.seed}/${rolloutId}`, mixture });
        entries.push({ rolloutId, harness, task: task.id, plan });
        specs.push({
          rolloutId,
          task: directory,
          harness,
          group: rolloutId,
          seed: `${options.seed}/${rolloutId}`,
          sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 200 },
          limits: { wallMs: 240_000, maxTurns: 8, maxTokens: 2000 },
          labels: { family: task.family, plan },
        });
      }
    }
  }
  writeFileAtomic(indexFile(run), entries.map((entry) => JSON.stringify(entry) + '\n').join(''));
  try {
    await stack.start();
    const pool = stackPool(stack, sandboxes, run, {
      concurrency: options.concurrency,
      perHarness: options.perHarness,
    });
    const started = Date.now();
    let done = 0;
    const order = randomStream(options.seed, 'order').shuffle(specs);
    const results = await pool.run(
      order,
      (result) => {
        done++;
        if (result.fault)
          progress.line(`${result.rolloutId}: ${result.fault.code} ${result.fault.message.slice(0, 200)}`);
        const seconds = (Date.now() - started) / 1000;
        progress.update(
          `demonstrations ${done}/${order.length} · ${duration((seconds / done) * (order.length - done))} left`,
        );
      },
      options.signal ? { signal: options.signal } : {},
    );
    for (const plan of ['clean', 'dominant', 'other']) {
      const rewards = results.flatMap((result, index) =>
        order[index]!.labels['plan'] === plan && result.reward !== null ? [result.reward] : [],
      );
      if (rewards.length)
        progress.line(
          `plan ${plan}: ${rewards.length} demonstrations, mean reward ${mean(rewards).toFixed(3)}`,
        );
    }
  } finally {
    await stack.close();
    await sandboxes.sweep();
  }
}
