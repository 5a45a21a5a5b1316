import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { packTrees } from '@treeward/learner';
import { readRecord } from '@treeward/telemetry';
import { recoverDirectory, type RolloutTree } from '@treeward/tree-recovery';
import { readMetrics } from './metrics.js';
import { runCli } from './testing/run-cli.js';

// The shipped policy, llama.cpp and tfjs, two steps in our own loop: are the trained tokens the sampled ones, and do learner
// and engine mean the same by their probabilities, before and after an update?
describe('fidelity', () => {
  const run = join(mkdtempSync(join(tmpdir(), 'fidelity-')), 'run');
  let trees: { directory: string; tree: RolloutTree }[] = [];

  beforeAll(async () => {
    const settings = ['rollouts.groups={ agent-loop = 6 }', 'eval.tasks=0', 'run.steps=2'].flatMap((text) => [
      '--set',
      text,
    ]);
    const { code, stderr } = await runCli(['train', '--run-dir', run, ...settings]);
    expect(code, stderr).toBe(0);
    trees = readdirSync(join(run, 'rollouts')).map((name) => {
      const directory = join(run, 'rollouts', name);
      return { directory, tree: recoverDirectory(directory) };
    });
    expect(trees).toHaveLength(48);
  });

  it('every trained id is one that the engine sampled, once', () => {
    for (const { directory, tree } of trees) {
      const record = readRecord(directory);
      const sampled = record.events.flatMap((event) =>
        event.type === 'call.sampled' ? [...record.tokens(event.tokens)!] : [],
      );
      const packed = packTrees([tree], [1]);
      const trained = [...packed.tokens_T].filter((_, t) => packed.owned_T[t] === 1);
      expect(trained.sort()).toEqual(sampled.sort());
    }
  });

  it('the version of every call is known and is that of its step', () => {
    for (const { tree } of trees) {
      const step = Number(tree.labels['step']);
      expect(tree.calls.map((call) => call.policyVersion)).toEqual(tree.calls.map(() => step - 1));
    }
  });

  it('learner and engine agree on log-probabilities: mean < 1e-3, max < 0.05', () => {
    const lines = readMetrics(join(run, 'metrics.jsonl'));
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      console.log(
        `step ${line['progress/step']}: |logp(learner) - logp(engine)| mean ${line['policy/logprob_diff_mean']!.toExponential(2)}, max ${line['policy/logprob_diff_max']!.toExponential(2)}`,
      );
      expect(line['policy/logprob_diff_mean']).toBeLessThan(1e-3);
      expect(line['policy/logprob_diff_max']).toBeLessThan(0.05);
      expect(line['progress/tokens_owned']).toBeGreaterThan(50);
    }
    // The second step was sampled from updated weights: the comparison above covers the hand-over.
    expect(lines.some((line) => line['optim/grad_norm']! > 0)).toBe(true);
  });
});
