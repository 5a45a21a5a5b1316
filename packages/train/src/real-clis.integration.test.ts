import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { taskById } from '@treeward/datasets';
import { adapters } from '@treeward/harness-adapters';
import { writeScript } from './demonstrator.js';
import { runCli } from './testing/run-cli.js';

const CLEAN = { clean: 1, dominant: 0, other: 0 };
/** The harnesses of the main job play three families; the others, of which some take 15 s to start, one. */
const FAMILIES = ['config-1', 'bug-1', 'fill-1'];
const MAIN = new Set(['claude-code', 'openclaw', 'agent-loop']);

// A scripted perfect policy through the real CLI, sandbox, gateway, record, recovery and checker: reward 1, one chain.
for (const adapter of adapters) {
  const installed = await adapter.detect();
  const title = installed
    ? `${adapter.name} ${installed.version}`
    : `${adapter.name} (skipped: not installed)`;
  describe.skipIf(!installed)(title, () => {
    it.each(MAIN.has(adapter.name) ? FAMILIES : FAMILIES.slice(0, 1))(
      '%s: a scripted perfect policy earns 1 and every sampled token is trained',
      async (id) => {
        const directory = mkdtempSync(join(tmpdir(), 'real-'));
        const scripts = join(directory, 'scripts');
        const task = taskById(id);
        writeScript(scripts, `${id}-${adapter.name}-7`, task, adapter.name, { seed: '7', mixture: CLEAN });
        const { code, stdout, stderr } = await runCli([
          ...[
            'rollout',
            '--task',
            `datasets/tasks/sample/${id}`,
            '--harness',
            adapter.name,
            '--seed',
            '7',
            '--max-tokens',
            '200',
          ],
          ...['--engine', `scripted:${scripts}`, '--out', join(directory, 'out'), '--json'],
        ]);
        expect(code, stderr + stdout).toBe(0);
        const result = JSON.parse(stdout);
        expect(result.reward).toBe(1);
        const titles = adapter.asksTitle ? 1 : 0;
        expect(result.calls).toBe(task.oracle.length + 1 + titles);
        const { tree } = result;
        expect(tree.verdict.kind).toBe('trainable');
        expect(
          tree.calls.every(
            (call: { untrained: string | null; policyVersion: number | null }) =>
              call.untrained === null && call.policyVersion !== null,
          ),
        ).toBe(true);
        expect(tree.edges.map((edge: { type: string }) => edge.type)).toEqual(
          task.oracle.map(() => 'continue'),
        );

        const recovered = await runCli(['recover', join(directory, 'out'), '--json']);
        expect(JSON.parse(recovered.stdout).rollouts).toEqual([tree]);
      },
    );
  });
}
