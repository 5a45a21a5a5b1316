import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunFolder } from '@treeward/base';
import { Gateway } from '@treeward/gateway';
import { adapterByName, registerAdapter, type HarnessAdapter } from '@treeward/harness-adapters';
import type { Scenario } from '@treeward/harness-adapters/testing';
import { BpeTokenizer } from '@treeward/policy';
import { runRollout, type RolloutResult } from '@treeward/rollout';
import type { SandboxProvider } from '@treeward/sandbox';
import { recoverDirectory, type RolloutTree } from '@treeward/tree-recovery';
import { scenarioAdapter } from './scenario-adapter.js';
import { ScriptedPolicy, type ScriptedPolicyOptions, type SeenRequest } from './scripted-policy.js';
import { TurnsTemplate } from './turns-template.js';

const tokenizer = fileURLToPath(
  new URL('../../../../../datasets/cold-start/tokenizer.json', import.meta.url),
);

export interface PlayOptions {
  /** See `ScriptedPolicyOptions`. @default none */
  waitsFor?: ScriptedPolicyOptions['waitsFor'];
  /** Files of the task directory, beside what a scenario has. @default none */
  taskFiles?: Readonly<Record<string, string>>;
}

export interface Played {
  result: RolloutResult;
  /** Holds all that was written; left to the caller, who may want to look at it. */
  work: string;
  /** The record's directory. */
  directory: string;
  seen: readonly SeenRequest[];
  tree: RolloutTree;
}

/**
 * A scenario as a rollout of the real thing: CLI in a sandbox, gateway, record with every witness, recovery. Only the model
 * is a script, and the checker says 1.
 */
export async function playScenario(
  scenario: Scenario,
  sandboxes: SandboxProvider,
  options: PlayOptions = {},
): Promise<Played> {
  const inner = adapterByName(scenario.harness);
  const adapter = scenarioAdapter(inner, scenario);
  const unregister = registerAdapter(adapter);
  try {
    return await rollout(scenario, adapter, sandboxes, options);
  } finally {
    unregister();
  }
}

async function rollout(
  scenario: Scenario,
  adapter: HarnessAdapter,
  sandboxes: SandboxProvider,
  { waitsFor = {}, taskFiles = {} }: PlayOptions,
): Promise<Played> {
  const work = mkdtempSync(join(tmpdir(), 'tree-'));
  const run = new RunFolder(join(work, 'run'));
  const template = new TurnsTemplate(BpeTokenizer.load(tokenizer));
  const policy = new ScriptedPolicy({ adapter, script: scenario.script, template, waitsFor });
  const { engine, faults, canonicalise, identify } = policy;
  const gateway = new Gateway({ engine, template, faults, canonicalise, identify });
  const rolloutId = `tree-${adapter.name}`;
  const result = await runRollout(
    {
      rolloutId,
      task: writeTask(join(work, 'task'), scenario, taskFiles),
      harness: adapter.name,
      group: rolloutId,
      seed: '1',
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 2000 },
      limits: { wallMs: 90_000, maxTurns: 20, maxTokens: 100_000 },
      labels: {},
    },
    {
      gateway,
      sandboxes,
      grader: { grade: async () => ({ reward: 1, scores: {}, cpuSeconds: 0 }) },
      socketRoot: join(work, 's'),
      folder: (id) => run.rollout(id),
    },
  );
  const directory = run.rollout(rolloutId).root;
  return { result, work, directory, seen: policy.seen, tree: recoverDirectory(directory) };
}

function writeTask(
  directory: string,
  { tasks, files = {} }: Scenario,
  more: Readonly<Record<string, string>>,
): string {
  const entry = { task_id: 'scenario', user_query: tasks[0]!.prompt };
  const all = {
    'data_entry.json': JSON.stringify(entry),
    'reward/reward.sh': 'echo 1\n',
    ...Object.fromEntries(Object.entries(files).map(([path, text]) => [`input_files/${path}`, text])),
    ...more,
  };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return directory;
}
