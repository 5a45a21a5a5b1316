import { BubblewrapProvider } from '@treeward/sandbox';
import { describeTree } from '@treeward/tree-recovery';
import { afterAll, expect, test } from 'vitest';
import {
  claudeCompaction,
  claudeSubagents,
  codexSubagent,
  faults,
  openclawSubagents,
  opencodeSubagents,
  resumed,
} from '@treeward/harness-adapters/testing';
import { namedTree } from './testing/cli-trees/named-tree.js';
import { playScenario } from './testing/cli-trees/play.js';

const sandboxes = new BubblewrapProvider({ run: 'trees' });
const list = [
  [claudeSubagents(), { together: ['A.0', 'B.0'] }],
  [claudeCompaction(), {}],
  [codexSubagent(), {}],
  [faults('pi', { tool: 'bash', argument: 'command' }), {}],
  [faults('claude-code', { tool: 'Bash', argument: 'command' }), {}],
  [faults('opencode', { tool: 'bash', argument: 'command' }), {}],
  [opencodeSubagents(), { together: ['A.0', 'B.0'] }],
  [openclawSubagents(), { together: ['A.0', 'B.0'] }],
  [resumed('openclaw'), {}],
] as const;
for (const [scenario, options] of list) {
  test(scenario.name, async () => {
    const t = Date.now();
    const played = await playScenario(scenario, sandboxes, options);
    console.log(
      scenario.name,
      Date.now() - t,
      played.directory,
      JSON.stringify(played.result.fault),
      played.seen.map(({ name }, i) => `${i}=${name}`).join(' '),
    );
    console.log(describeTree(played.tree));
    console.log(JSON.stringify(namedTree(played.tree, played.seen), null, 1));
    expect(played.result.fault).toBeNull();
  });
}
afterAll(() => sandboxes.close());
