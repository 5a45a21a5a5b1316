import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { adapterByName } from '@treeward/harness-adapters';
import type { Scenario } from '@treeward/harness-adapters/testing';
import { lastConversation } from '@treeward/rollout';
import { BubblewrapProvider } from '@treeward/sandbox';
import { readRecord, type RecordEvent } from '@treeward/telemetry';
import { describeTree, recoverTree, type RolloutTree } from '@treeward/tree-recovery';
import { afterAll, describe, expect, it } from 'vitest';
import { namedTree, type NamedTree } from './testing/cli-trees/named-tree.js';
import { playScenario, type Played } from './testing/cli-trees/play.js';
import { taskServer, treeScenarios } from './testing/cli-trees/scenarios.js';

const sandboxes = new BubblewrapProvider({ run: 'trees' });

const harnesses = [...new Set(treeScenarios.map(({ scenario }) => scenario.harness))];
const absent = new Set<string>();
for (const harness of harnesses) if (!(await adapterByName(harness).detect())) absent.add(harness);
const title = ({ name, harness }: Scenario): string =>
  absent.has(harness) ? `${name} (skipped: ${harness} not installed)` : name;

const readable = ({ tree, seen, directory }: Played): string =>
  [
    seen.map(({ name }, call) => `${call} ${name}`).join(', '),
    describeTree(tree),
    `record ${directory}`,
  ].join('\n');

/** The same record from a harness that nobody knows: no identity, no headers, no transcript. */
function blindTree(directory: string): RolloutTree {
  const record = readRecord(directory);
  const events = record.events.flatMap((event): RecordEvent[] => {
    if (event.type === 'transcript') return [];
    if (event.type !== 'call.start') return [event];
    const { identity: _, ...start } = event;
    return [{ ...start, headers: {} }];
  });
  return recoverTree({
    events,
    issues: record.issues,
    tokens: (ref) => record.tokens(ref),
    logprobs: (ref) => record.logprobs(ref),
  });
}

/** Calls whose arrival the file witness did not see, and the witnesses that a harness has and the record has not. */
function unwitnessed({ directory, seen }: Played): unknown[] {
  const { events } = readRecord(directory);
  const looked = new Set(events.map((event) => (event.type === 'workspace' ? event.call : undefined)));
  const kinds = new Set(events.map(({ type }) => type));
  return [
    ...seen.map((_, call) => call).filter((call) => !looked.has(call)),
    ...(['transcript', 'process.exit', 'verifier'] as const).filter((type) => !kinds.has(type)),
  ];
}

/** What a scenario counts, counted in a tree. */
function counts({ roles, agents, edges }: NamedTree, { truth }: Scenario): Scenario['truth'] {
  const { side: _, ...work } = roles;
  const of = (type: string): number => edges.filter((edge) => edge.split(' ')[1] === type).length;
  return {
    calls: Object.fromEntries(Object.entries(work).map(([role, names]) => [role, names.length])),
    edges: Object.fromEntries(Object.keys(truth.edges).map((type) => [type, of(type)])),
    agents: agents.length - 1,
  };
}

// Real CLIs in sandboxes, the real gateway and its record; only the model is a script, whose structure is known.
describe('trees of real CLIs', () => {
  for (const { scenario, tree, needsHeaders, waitsFor } of treeScenarios) {
    it.skipIf(absent.has(scenario.harness))(title(scenario), async () => {
      const played = await playScenario(scenario, sandboxes, waitsFor && { waitsFor });
      expect(played.result.fault).toBeNull();
      expect(unwitnessed(played)).toEqual([]);
      const found = namedTree(played.tree, played.seen);
      expect(found, readable(played)).toEqual(tree);
      const blind = namedTree(blindTree(played.directory), played.seen);
      if (needsHeaders === undefined) expect(blind, 'without headers and transcript').toEqual(tree);
      else expect(blind, needsHeaders).not.toEqual(tree);
      expect(counts(found, scenario)).toEqual(scenario.truth);
      expect(played.tree.issues.filter(({ severity }) => severity === 'fatal')).toEqual([]);
      rmSync(played.work, { recursive: true });
    });
  }
});

describe('a task with tools of its own', () => {
  const { scenario, server } = taskServer;
  it.skipIf(absent.has(scenario.harness))(title(scenario), async () => {
    const code = new URL(import.meta.resolve('@treeward/harness-adapters/package.json'));
    const taskFiles = {
      'mcp/servers.json': JSON.stringify({ mcpServers: { oracle: server } }),
      'mcp/server.mjs': readFileSync(fileURLToPath(new URL('src/scripted/mcp-secret.mjs', code)), 'utf8'),
    };
    const played = await playScenario(scenario, sandboxes, { taskFiles });
    expect(played.result.fault).toBeNull();
    const conversation = lastConversation(played.directory);
    expect(conversation?.tools.map(({ name }) => name)).toContain('mcp__oracle__secret');
    expect(JSON.stringify(conversation?.messages)).toContain('tangerine of Ann');
    expect(namedTree(played.tree, played.seen).edges).toEqual(['main.0 continue main.1']);
    rmSync(played.work, { recursive: true });
  });
});

afterAll(() => sandboxes.close());
