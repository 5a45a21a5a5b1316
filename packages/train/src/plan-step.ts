import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { randomStream, type RunFolder } from '@treeward/base';
import { heldOut, trainTask, writeTaskDirectory, type GeneratedTask } from '@treeward/datasets';
import type { RolloutSpec } from '@treeward/rollout';
import { workspaceScore } from './algo-config.js';
import type { TrainConfig } from './config.js';
import { writeScript } from './demonstrator.js';

export interface StepPlan {
  specs: RolloutSpec[];
}

const pad = (value: number, width: number): string => String(value).padStart(width, '0');

/** Harness of each group, `{ "claude-code": 2, openclaw: 1 }` → three names, interleaved so that slow starts overlap. */
export function spreadHarnesses(counts: Readonly<Record<string, number>>, total?: number): string[] {
  const names = Object.keys(counts).filter((name) => counts[name]! > 0);
  const sum = names.reduce((all, name) => all + counts[name]!, 0);
  const wanted = total ?? sum;
  // Largest deficit first: after k picks each harness has about k × its share.
  const given = new Map(names.map((name) => [name, 0]));
  return Array.from({ length: wanted }, (_, k) => {
    const deficit = (name: string): number => ((k + 1) * counts[name]!) / sum - given.get(name)!;
    const pick = names.reduce((best, name) => (deficit(name) > deficit(best) + 1e-12 ? name : best));
    given.set(pick, given.get(pick)! + 1);
    return pick;
  });
}

/** Deterministic in (config, step): a resumed step plans the same tasks, harnesses, ids and seeds. */
export function planStep(config: TrainConfig, run: RunFolder, step: number): StepPlan {
  const { groups, group_size } = config.rollouts;
  const seed = config.run.seed;
  const gradeStates = workspaceScore(config.algo);
  // Which task meets which harness is drawn anew each step, or each family would always meet the same one.
  const harnesses = randomStream(seed, 'harnesses', step).shuffle(spreadHarnesses(groups));
  const specs = harnesses.flatMap((harness, index) => {
    const group = `s${pad(step, 6)}-g${pad(index, 2)}`;
    const task = trainTask(step, index, seed);
    const directory = materialise(task, join(run.root, 'tasks', group));
    return Array.from({ length: group_size }, (_, member) =>
      specOf(config, run, {
        rolloutId: `${group}-r${member}`,
        group,
        directory,
        harness,
        task,
        labels: { step: String(step) },
        gradeStates,
      }),
    );
  });
  return { specs };
}

/** The held-out tasks, each with one harness; the same list before and after training, and whatever the seed of the run. */
export function planHeldOut(config: TrainConfig, run: RunFolder, name: string): StepPlan {
  // Shuffled once for all: families take turns, so with two harnesses in turns each family would meet only one of them.
  const harnesses = randomStream('held-out', 'harnesses').shuffle(
    spreadHarnesses(config.eval.harnesses, config.eval.tasks),
  );
  const tasks = heldOut(harnesses.length);
  const specs = harnesses.map((harness, index) => {
    const task = tasks[index]!;
    const directory = materialise(task, join(run.root, 'tasks', `held-out-${pad(index, 4)}`));
    const rolloutId = `eval-${name}-${pad(index, 4)}`;
    return specOf(config, run, {
      rolloutId,
      group: rolloutId,
      directory,
      harness,
      task,
      labels: { eval: name },
    });
  });
  return { specs };
}

/** Writes the task's directory unless it is there whole: a process killed while it wrote left no `data_entry.json`. */
export function materialise(task: GeneratedTask, directory: string): string {
  if (!existsSync(join(directory, 'data_entry.json'))) writeTaskDirectory(task, directory);
  return directory;
}

interface SpecParts {
  rolloutId: string;
  group: string;
  directory: string;
  harness: string;
  task: GeneratedTask;
  labels: Record<string, string>;
  gradeStates?: boolean;
}

function specOf(config: TrainConfig, run: RunFolder, parts: SpecParts): RolloutSpec {
  const { rolloutId, group, directory, harness, task, labels, gradeStates = false } = parts;
  const { sampling, rollouts } = config;
  const seed = `${config.run.seed}/${rolloutId.replace(/^eval-[a-z]+(-\d+)?-/, 'eval-')}`;
  if (config.engine.kind === 'scripted')
    writeScript(join(run.root, 'scripts'), rolloutId, task, harness, { seed });
  return {
    rolloutId,
    task: directory,
    harness,
    group,
    seed,
    samplingFrom: config.sampling.from,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.top_p,
      topK: sampling.top_k,
      maxTokens: sampling.max_tokens,
    },
    limits: {
      wallMs: rollouts.wall_seconds * 1000,
      maxTurns: rollouts.max_turns,
      maxTokens: rollouts.max_tokens,
    },
    labels: { ...labels, family: task.family, domain: task.domain },
    ...(gradeStates && { gradeStates }),
  };
}
