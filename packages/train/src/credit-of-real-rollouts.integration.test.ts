import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJson } from '@treeward/base';
import type { RolloutResult } from '@treeward/rollout';
import { readMetrics } from './metrics.js';
import { root, runCli } from './testing/run-cli.js';
import { tinyRun } from './testing/tiny-run.js';

const full = process.env['TREEWARD_TEST_FULL'] === '1';

describe('credit that a run takes from its own rollouts', () => {
  it('workspace-score: every call is compared with what its workspace was worth, graded after the rollout', async () => {
    const { directory, config } = await tinyRun(1);
    try {
      const run = join(directory, 'run');
      const set = ['--set', 'algo.baseline=workspace-score'];
      const { code, stderr } = await runCli(['train', '@', config, '--run-dir', run, '--json', ...set]);
      expect(code, stderr).toBe(0);
      const results = readdirSync(join(run, 'rollouts')).map((name) =>
        readJson<RolloutResult>(join(run, 'rollouts', name, 'result.json')),
      );
      expect(results).toHaveLength(6);
      const [metrics] = readMetrics(join(run, 'metrics.jsonl'));
      expect(metrics!['baseline/failed']).toBe(0);
      expect(metrics!['baseline/known_frac']).toBeGreaterThan(0);
      expect(metrics!['optim/updates']).toBeGreaterThan(0);
      for (const { reward, calls, states } of results) {
        expect(states!.score_C).toHaveLength(calls);
        // Nothing was done before the first call; the last one finds what the reward is given for.
        expect([0, null]).toContain(states!.score_C[0]);
        expect([reward, null]).toContain(states!.score_C.at(-1));
      }
      expect(results.some(({ states }) => states!.score_C.some((score) => score! > 0))).toBe(true);
      // Equal workspaces of a group are graded once.
      const graded = results.reduce((all, { states }) => all + states!.graded, 0);
      expect(graded).toBeLessThan(results.reduce((all, { states }) => all + states!.score_C.length, 0));
      expect(readdirSync(join(run, 'rollouts', results[0]!.rolloutId))).not.toContain('states');
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it.runIf(full).each([
    ['history', 'lineage', 0.95],
    ['context', 'chain', 1],
  ])(
    'ppo with a %s critic along %s, lambda %d, through Claude Code and pi (a minute of rollouts: full tests only)',
    async (critic, order, lambda) => {
      const directory = mkdtempSync(join(tmpdir(), 'ppo-run-'));
      try {
        const run = join(directory, 'run');
        const settings = {
          'eval.tasks': '0',
          'rollouts.groups': '{ "claude-code" = 1, pi = 1 }',
          'rollouts.group-size': '3',
          'algo.type': 'ppo',
          'algo.critic': critic,
          'algo.order': order,
          'algo.lambda': String(lambda),
        };
        const { code, stderr } = await runCli([
          ...['train', '@', join(root, 'packages/train/configs/fast.toml')],
          ...['--run-dir', run, '--max-steps', '3', '--json'],
          ...Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
        ]);
        expect(code, stderr).toBe(0);
        const [first, ...later] = readMetrics(join(run, 'metrics.jsonl'));
        // The critic alone comes first: the policy does not move.
        expect(first).not.toHaveProperty('loss/policy');
        expect(first!['loss/value']).toBeGreaterThan(0);
        expect(later).toHaveLength(2);
        for (const metrics of later) {
          expect(metrics['loss/value']).toBeGreaterThan(0);
          expect(metrics['value/explained_variance']).toBeLessThanOrEqual(1);
          expect(metrics['adv/std']).toBeGreaterThan(0);
          expect(metrics['optim/grad_norm']).toBeGreaterThan(0);
          expect(metrics['policy/logprob_diff_max']).toBeLessThan(1e-3);
          expect(metrics['fault/infrastructure']).toBe(0);
        }
        console.log(
          `${critic} ${order}`,
          later.map((metrics) => [metrics['loss/value'], metrics['value/explained_variance']]),
        );
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    },
    600_000,
  );
});
