import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canonicalKey, type Message, type ReplyPart } from '@treeward/messages';
import { BubblewrapProvider, type FileChange, type RunResult } from '@treeward/sandbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adapters } from './registry.js';
import { scriptedServer, type Scripted, type ScriptedServer } from './testing/scripted-server.js';
import { toolCall } from './tool-call.js';
import type { HarnessAdapter, ToolVerb } from './types.js';

const PROMPT = '- Put beta into capitals in notes.txt.\n\nThen say "Done.".';
const NOTES = 'alpha\nbeta\n';
const sandboxes = new BubblewrapProvider({ run: 'harness-adapters' });

interface Outcome {
  run: RunResult;
  calls: ScriptedServer['calls'];
  transcript: Map<string, Uint8Array>;
  changes: FileChange[];
  notes: string;
}

/** One rollout of the real CLI in a real sandbox against the script. */
async function rollout(
  adapter: HarnessAdapter,
  script: readonly Scripted[],
  maxTurns: number,
): Promise<Outcome> {
  const installed = (await adapter.detect())!;
  const from = mkdtempSync(join(tmpdir(), 'task-'));
  writeFileSync(join(from, 'notes.txt'), NOTES);
  const server = await scriptedServer(script);
  try {
    const sandbox = await sandboxes.open({
      id: `adapter-${adapter.name}-${process.pid}-${Date.now()}`,
      workspaceFrom: from,
      network: { kind: 'model-socket', directory: server.directory },
      mounts: installed.mounts,
      limits: adapter.limits,
    });
    try {
      const session = sandbox.session();
      const endpoint = { baseUrl: sandbox.modelUrl!, key: 'key-of-this-rollout', rolloutId: 'run/0/3' };
      const task = { prompt: PROMPT, maxTurns };
      await adapter.prepare(session, endpoint);
      const command = adapter.command(session, installed, task, endpoint);
      const run = await sandbox.run(command.argv, { ...command.run, timeout: 120_000 });
      return {
        run,
        calls: server.calls,
        transcript: await adapter.readTranscript(session, task, endpoint),
        changes: await sandbox.changes(),
        notes: Buffer.from(await session.read('/workspace/notes.txt')).toString(),
      };
    } finally {
      await sandbox.destroy();
    }
  } finally {
    await server.close();
    rmSync(from, { recursive: true, force: true });
  }
}

const text = (said: string): ReplyPart[] => [{ type: 'text', text: said }];
const keys = (messages: readonly Message[]): string[] => messages.map(canonicalKey);

for (const adapter of adapters) {
  const installed = (await adapter.detect()) !== null;
  const { name, canonicalise } = adapter;
  const call = (verb: ToolVerb, ...values: string[]): ReplyPart[] => [
    { type: 'tool_call', id: '', ...toolCall(adapter.tools[verb], values) },
  ];
  const results = (calls: ScriptedServer['calls']): string[] =>
    canonicalise(calls.at(-1)!.request.messages).flatMap((m) => (m.role === 'tool' ? [m.text] : []));

  describe.skipIf(!installed)(name, () => {
    const turns: Scripted[] = [
      { status: 529 },
      [...text('Looking.'), ...call('read', '/workspace/notes.txt')],
      call('read', 'missing.txt'),
      call('edit', 'notes.txt', 'beta', 'BETA  '),
      call('write', 'sub/new.txt', 'one  \ntwo\n'),
      call('exec', 'tail -n +3 /proc/net/dev | cut -d: -f1; id -u; (: < /dev/tcp/192.0.2.1/80) 2>&1; pwd'),
      call('exec', 'echo out; ls nowhere; exit 3'),
      text('Done.'),
    ];
    let all: Outcome;
    beforeAll(async () => {
      all = await rollout(adapter, turns, 20);
    });

    test('ends well, with the final text on stdout, after one repeated call', () => {
      expect(all.run, all.run.stderr).toMatchObject({ code: 0, timedOut: false });
      expect(all.run.stdout.trim()).toBe('Done.');
      expect(all.calls).toHaveLength(turns.length);
      expect(all.calls.every(({ key }) => key === 'key-of-this-rollout')).toBe(true);
      console.log(
        `${name}: ${all.run.cpuSeconds.toFixed(2)} CPU s, ${(all.run.wallMs / 1000).toFixed(1)} s for ${turns.length} calls`,
      );
    });

    test('repeats an overloaded call unchanged', () => {
      expect(canonicalise(all.calls[1]!.request.messages)).toEqual(
        canonicalise(all.calls[0]!.request.messages),
      );
    });

    test('offers the tools that the adapter names, and asks the bare instruction', () => {
      const { tools, messages } = all.calls[0]!.request;
      expect(tools.map((tool) => tool.name).sort()).toEqual(
        Object.values(adapter.tools)
          .map(({ tool }) => tool)
          .sort(),
      );
      for (const { tool, arguments: names } of Object.values(adapter.tools)) {
        const { parameters } = tools.find((offered) => offered.name === tool)!;
        expect(new Set(parameters['required'] as string[])).toEqual(
          new Set(names.map((path) => path.split('.')[0])),
        );
      }
      expect(canonicalise(messages)).toEqual([{ role: 'user', text: PROMPT }]);
    });

    test('does its work in the workspace', () => {
      expect(all.notes.trimEnd()).toMatch(/^alpha\nBETA/);
      expect(all.changes.map(({ path }) => path)).toEqual(
        expect.arrayContaining(['notes.txt', 'sub/new.txt']),
      );
    });

    test('shows the policy plain results', () => {
      const [notes, missing, edited, written, network, failed] = results(all.calls);
      expect(notes).toBe(NOTES);
      expect(missing).not.toMatch(/^\{|\/workspace\//);
      expect(edited).toContain('notes.txt');
      expect(written).toContain('sub/new.txt');
      expect(network).toMatch(/^ *lo\n20001\n[^]*\/workspace$/);
      expect(failed).toMatch(/out[^]*nowhere/);
      expect(failed).toContain('3');
    });

    test('has no network but the model', () => {
      expect(results(all.calls)[4]).toMatch(
        /unreachable|cannot|can't|No such file|Permission|not permitted/i,
      );
    });

    test('every call continues the one before: prompt, reply, results', () => {
      for (let i = 2; i < all.calls.length; i++) {
        const before = all.calls[i - 1]!.request.messages;
        const reply: Message = { role: 'assistant', parts: [...(turns[i - 1] as ReplyPart[])] };
        const expected = [...keys(canonicalise(before)), canonicalKey(canonicalise([reply])[0]!)];
        const now = keys(canonicalise(all.calls[i]!.request.messages));
        expect(now.slice(0, expected.length)).toEqual(expected);
        expect(now).toHaveLength(expected.length + 1);
      }
    });

    test('leaves a transcript', () => {
      const whole = [...all.transcript.values()].map((bytes) => Buffer.from(bytes).toString()).join('\n');
      expect(whole).toContain('sub/new.txt');
    });

    const stopsItself = name !== 'openclaw';
    test(stopsItself ? 'stops at its turn limit' : 'stops when the model refuses more calls', async () => {
      const { run, calls } = await rollout(
        adapter,
        Array<Scripted>(3).fill(call('exec', 'echo on')),
        stopsItself ? 3 : 99,
      );
      expect(run.timedOut).toBe(false);
      expect(calls).toHaveLength(stopsItself ? 3 : 4);
      if (stopsItself) expect(run.code).toBe(1);
    });
  });

  if (!installed) test.skip(`skipped: ${name} not installed`, () => undefined);
}

/** Where a harness itself samples the same prompt again: what the tree calls a retry. */
describe('natural retries', () => {
  const cases: [string, string, ReplyPart[]][] = [
    ['agent-loop', 'a malformed call', text('<call>read<arg>path')],
    ['openclaw', 'a call of an unknown tool', [{ type: 'tool_call', id: '', name: 'frob', arguments: {} }]],
  ];
  for (const [name, what, bad] of cases) {
    const adapter = adapters.find((candidate) => candidate.name === name)!;
    test(`${name} asks again after ${what}`, async (context) => {
      if (!(await adapter.detect())) return context.skip(`skipped: ${name} not installed`);
      const { run, calls } = await rollout(adapter, [bad, text('Done.')], 9);
      expect(run.code, run.stderr).toBe(0);
      const [first, second] = calls.map(({ request }) => adapter.canonicalise(request.messages));
      expect(calls).toHaveLength(2);
      expect(second).toEqual(first);
    });
  }

  test('agent-loop gives up after two', async () => {
    const adapter = adapters.find((candidate) => candidate.name === 'agent-loop')!;
    const { run, calls } = await rollout(adapter, Array<Scripted>(5).fill(text('<call>read')), 9);
    expect(run.code).toBe(0);
    expect(calls).toHaveLength(3);
    expect(run.stdout).toBe('<call>read\n');
  });
});

afterAll(async () => {
  const { leaked, created, destroyed } = sandboxes.counters();
  await sandboxes.close();
  expect({ leaked, alive: created - destroyed }).toEqual({ leaked: 0, alive: 0 });
});
