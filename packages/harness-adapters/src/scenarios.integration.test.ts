import { BubblewrapProvider } from '@treeward/sandbox';
import type { TranscriptAgent } from '@treeward/telemetry';
import { afterAll, describe, expect, test } from 'vitest';
import { adapterByName } from './registry.js';
import { runScripted, type ScriptedOutcome } from './scripted/run.js';
import {
  claudeCompaction,
  claudeSubagents,
  codexSubagent,
  faults,
  mcp,
  openclawSubagents,
  opencodeSubagents,
  resumed,
  type Scenario,
} from './scripted/scenarios.js';

const sandboxes = new BubblewrapProvider({ run: 'scenarios' });

/** Harnesses that start slowly are left to the full run: two cores have four minutes for all real CLIs. */
const SLOW = ['openclaw', 'opencode'];
const full = process.env['TREEWARD_TEST_FULL'] === '1';

async function play(scenario: Scenario): Promise<ScriptedOutcome> {
  const outcome = await runScripted(adapterByName(scenario.harness), sandboxes, scenario);
  for (const run of outcome.runs) expect(run, run.stderr).toMatchObject({ code: 0, timedOut: false });
  const counted: Record<string, number> = {};
  for (const { identity } of outcome.calls) {
    const role = identity.requestClass ?? 'none';
    if (role !== 'side') counted[role] = (counted[role] ?? 0) + 1;
  }
  expect(counted).toEqual(scenario.truth.calls);
  expect(outcome.agents).toHaveLength(scenario.truth.agents + 1);
  return outcome;
}

function scenarioTest(scenario: Scenario, check: (outcome: ScriptedOutcome) => void): void {
  test(scenario.name, async (context) => {
    const { harness } = scenario;
    if (!(await adapterByName(harness).detect())) return context.skip(`skipped: ${harness} not installed`);
    if (!full && SLOW.includes(harness)) {
      return context.skip(`skipped: ${harness} starts slowly; TREEWARD_TEST_FULL=1 runs it`);
    }
    check(await play(scenario));
  });
}

const callIds = (agent: TranscriptAgent | undefined): unknown[] =>
  (agent?.entries ?? []).flatMap(({ parts }) => (parts ?? []).map((part) => (part as { id?: string }).id));

describe('sub-agents', () => {
  scenarioTest(claudeSubagents(), ({ calls, agents }) => {
    const of = (name: string): ScriptedOutcome['calls'][number] =>
      calls.find(
        ({ request }) =>
          JSON.stringify(request.messages).includes(`TASK-${name}: do it`) &&
          request.messages.every(({ role }) => role !== 'assistant'),
      )!;
    const [a, b, nested] = ['A', 'B', 'N'].map(of);
    expect(new Set(calls.map(({ identity }) => identity.session)).size).toBe(1);
    expect(a!.identity).toMatchObject({ requestClass: 'subagent', depth: 1 });
    expect(b!.identity).toMatchObject({ requestClass: 'subagent', depth: 1 });
    expect(nested!.identity.parentAgent).toBe(a!.identity.agent);
    expect(Math.max(a!.start, b!.start)).toBeLessThan(calls.at(-1)!.start);

    const main = agents[0];
    expect(main).toMatchObject({ agent: '', parentAgent: null, spawnedBy: null });
    for (const { identity } of [a!, b!]) {
      const witness = agents.find(({ agent }) => agent === identity.agent)!;
      expect(witness.parentAgent).toBe('');
      expect(callIds(main)).toContain(witness.spawnedBy);
    }
    const third = agents.find(({ agent }) => agent === nested!.identity.agent)!;
    expect(third.parentAgent).toBe(a!.identity.agent);
    expect(callIds(agents.find(({ agent }) => agent === a!.identity.agent))).toContain(third.spawnedBy);
  });

  scenarioTest(openclawSubagents(), ({ calls, agents }) => {
    const children = calls.filter(({ identity }) => identity.requestClass === 'subagent');
    expect(new Set(children.map(({ identity }) => identity.agent)).size).toBe(2);
    expect(children.every(({ identity }) => identity.depth === 1)).toBe(true);
    const [main, ...others] = agents;
    expect(main!.agent).toBe('');
    for (const agent of others) {
      expect(agent.parentAgent).toBe('');
      expect(callIds(main)).toContain(agent.spawnedBy);
    }
    // The transcript does not keep what came back; the requests do.
    const heard = JSON.stringify(
      calls.filter(({ identity }) => identity.requestClass === 'main').map(({ request }) => request.messages),
    );
    expect(heard).toContain('Result of A.');
    expect(heard).toContain('Result of B.');
  });
});

describe('sub-agents with sessions of their own', () => {
  for (const scenario of [codexSubagent(), opencodeSubagents()]) {
    scenarioTest(scenario, ({ calls, agents: [main, ...others] }) => {
      const children = calls.filter(({ identity }) => identity.requestClass === 'subagent');
      expect(new Set(calls.map(({ identity }) => identity.session)).size).toBe(1);
      expect(others.map(({ agent }) => agent).sort()).toEqual(
        [...new Set(children.map(({ identity }) => identity.agent))].sort(),
      );
      for (const { parentAgent, spawnedBy } of others) {
        expect(parentAgent).toBe('');
        expect(callIds(main)).toContain(spawnedBy);
      }
    });
  }
});

describe('conversations that go on', () => {
  scenarioTest(claudeCompaction(), ({ calls, agents }) => {
    const compaction = calls.find(({ identity }) => identity.requestClass === 'compaction')!;
    const after = calls.at(-1)!;
    expect(after.start).toBeGreaterThan(compaction.start);
    expect(JSON.stringify(after.request.messages)).toContain('notes.txt says alpha, beta.');
    expect(agents[0]!.entries.some(({ kind }) => kind === 'compaction')).toBe(true);
  });

  for (const harness of ['claude-code', 'codex', 'pi', 'opencode', 'openclaw']) {
    scenarioTest(resumed(harness), ({ calls }) => {
      const { canonicalise } = adapterByName(harness);
      const last = calls.at(-1)!.request.messages;
      expect(canonicalise(last)).toMatchObject([
        { role: 'user', text: expect.stringContaining('Say one.') },
        { role: 'assistant' },
        { role: 'user', text: expect.stringContaining('Say two.') },
      ]);
    });
  }
});

describe('faults are repeated', () => {
  const execs: [string, string, string][] = [
    ['agent-loop', 'exec', 'command'],
    ['claude-code', 'Bash', 'command'],
    ['codex', 'exec_command', 'cmd'],
    ['pi', 'bash', 'command'],
    ['opencode', 'bash', 'command'],
    ['openclaw', 'exec', 'command'],
  ];
  for (const [harness, tool, argument] of execs) {
    // OpenClaw gives up on a stream that breaks off.
    const drops = harness !== 'openclaw';
    scenarioTest(faults(harness, { tool, argument }, { drops }), ({ calls }) => {
      const { canonicalise } = adapterByName(harness);
      const work = calls.filter(({ identity }) => identity.requestClass !== 'side');
      for (const index of drops ? [0, 2, 4] : [0, 2]) {
        const [failed, again] = [work[index]!, work[index + 1]!];
        expect(canonicalise(again.request.messages)).toEqual(canonicalise(failed.request.messages));
      }
      expect(work[3]!.start - work[2]!.start).toBeGreaterThanOrEqual(900);
    });
  }
});

describe('MCP servers', () => {
  for (const [harness, tool] of [
    ['claude-code', 'mcp__oracle__secret'],
    ['codex', 'mcp__oracle__secret'],
    ['opencode', 'oracle_secret'],
    ['openclaw', 'oracle__secret'],
  ] as const) {
    scenarioTest(mcp(harness, tool), ({ calls }) => {
      const last = calls.at(-1)!.request;
      expect(last.tools.map(({ name }) => name)).toContain(tool);
      const result = last.messages.findLast(({ role }) => role === 'tool');
      expect(JSON.stringify(result)).toContain('tangerine of Ann');
    });
  }
});

afterAll(() => sandboxes.close());
