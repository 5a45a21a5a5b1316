import { canonicalKey, type Message, type ReplyPart } from '@treeward/messages';
import { BubblewrapProvider } from '@treeward/sandbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adapters } from './registry.js';
import { runScripted, type ScriptedOutcome } from './scripted/run.js';
import { call, inOrder, say, type Scripted } from './scripted/script.js';
import type { ScriptedCall } from './scripted/server.js';
import { toolCall } from './tool-call.js';
import type { HarnessAdapter, ToolVerb } from './types.js';

const PROMPT = '- Put beta into capitals in notes.txt.\n\nThen say "Done.".';
const NOTES = 'alpha\nbeta\n';
const KEY = 'key-of-this-rollout';
const sandboxes = new BubblewrapProvider({ run: 'harness-adapters' });

const rollout = (
  adapter: HarnessAdapter,
  script: readonly Scripted[],
  maxTurns: number,
): Promise<ScriptedOutcome> =>
  runScripted(adapter, sandboxes, {
    tasks: [{ prompt: PROMPT, maxTurns }],
    files: { 'notes.txt': NOTES },
    script: inOrder(script),
  });

/** Those that belong to the work: opencode also asks for a title. */
const work = (calls: readonly ScriptedCall[]): ScriptedCall[] =>
  calls.filter(({ identity }) => identity.requestClass !== 'side');

/** A limit of its own; the others end when the model refuses more calls. */
const STOPS = ['agent-loop', 'claude-code'];
/** These do not say the exit code of a command. */
const NO_EXIT_CODE = ['opencode'];
/** Offered beside the tools that the adapter names, and not to be had without. */
const EXTRA_TOOLS: Readonly<Record<string, string[]>> = { codex: ['write_stdin'] };

const keys = (messages: readonly Message[]): string[] => messages.map(canonicalKey);

for (const adapter of adapters) {
  const installed = (await adapter.detect()) !== null;
  const { name, canonicalise } = adapter;
  const verb = (which: ToolVerb, ...values: string[]): ReplyPart => {
    const { name: tool, arguments: args } = toolCall(adapter.tools[which], values);
    return call(tool, args);
  };

  describe.skipIf(!installed)(name, () => {
    const turns: Scripted[] = [
      { status: 529 },
      { status: 529 },
      [...say('Looking.'), verb('read', '/workspace/notes.txt')],
      [verb('read', 'missing.txt'), verb('exec', 'echo out; ls nowhere; exit 3')],
      [verb('edit', 'notes.txt', 'beta', 'BETA  ')],
      [verb('write', 'sub/new.txt', 'one  \ntwo\n')],
      [verb('exec', 'tail -n +3 /proc/net/dev | cut -d: -f1; id -u; (: < /dev/tcp/192.0.2.1/80) 2>&1; pwd')],
      [verb('write', '/usr/lib/no-file', 'x')],
      say('Done.'),
    ];
    let all: ScriptedOutcome;
    let calls: ScriptedCall[];
    let results: string[];
    beforeAll(async () => {
      all = await rollout(adapter, turns, 20);
      calls = work(all.calls);
      results = canonicalise(calls.at(-1)!.request.messages).flatMap((m) =>
        m.role === 'tool' ? [m.text] : [],
      );
    });

    test('ends well although a write failed, with the final text on stdout, after two repeated calls', () => {
      const [run] = all.runs;
      expect(run, run!.stderr).toMatchObject({ code: 0, timedOut: false });
      expect(run!.stdout.split('\n')).toContain('Done.'); // some say more: texts on the way, a failed write
      expect(calls).toHaveLength(turns.length);
      expect(all.calls.every(({ key }) => key === KEY)).toBe(true);
      console.log(
        `${name} ${all.version}: ${run!.cpuSeconds.toFixed(2)} CPU s, ${(run!.wallMs / 1000).toFixed(1)} s for ${all.calls.length} calls, ${(calls[0]!.body.length / 1000).toFixed(1)} KB`,
      );
    });

    test('repeats an overloaded call unchanged', () => {
      const [first, second, third] = calls.map(({ request }) => canonicalise(request.messages));
      expect(second).toEqual(first);
      expect(third).toEqual(first);
    });

    test('offers the tools that the adapter names, and asks the bare instruction', () => {
      const { tools, messages } = calls[0]!.request;
      const named = new Set(Object.values(adapter.tools).map(({ tool }) => tool));
      expect(tools.map((tool) => tool.name).sort()).toEqual([...named, ...(EXTRA_TOOLS[name] ?? [])].sort());
      for (const { tool, arguments: names } of Object.values(adapter.tools)) {
        const { parameters } = tools.find((offered) => offered.name === tool)!;
        expect(new Set(parameters['required'] as string[])).toEqual(
          new Set(names.map((path) => path.split('.')[0])),
        );
      }
      expect(canonicalise(messages)).toEqual([{ role: 'user', text: PROMPT }]);
    });

    test('does its work in the workspace', () => {
      expect(all.files['notes.txt']).toMatch(/^alpha\nBETA/);
      expect(all.files['sub/new.txt']).toMatch(/^one *\ntwo/);
    });

    test('shows the policy plain results', () => {
      const [notes, missing, failed, edited, written, network, refused] = results;
      expect(notes).toBe(NOTES);
      expect(missing).not.toMatch(/^\{|\/workspace\//);
      expect(failed).toMatch(/out[^]*nowhere/);
      if (!NO_EXIT_CODE.includes(name)) expect(failed).toContain('3');
      expect(edited).toBeDefined();
      expect(written).toBeDefined();
      expect(network).toMatch(/^ *lo\n20001\n[^]*\/workspace\n?$/);
      expect(refused).toMatch(/denied|read-only|EROFS|EACCES|not permitted|refus|writeFile/i);
    });

    test('has no network but the model', () => {
      expect(results[5]).toMatch(/unreachable|cannot|can't|No such file|Permission|not permitted/i);
    });

    test('every call continues the one before: prompt, reply, results', () => {
      for (let i = 3; i < calls.length; i++) {
        const before = calls[i - 1]!.request.messages;
        const parts = [...(turns[i - 1] as ReplyPart[])];
        const reply: Message = { role: 'assistant', parts };
        const expected = [...keys(canonicalise(before)), canonicalKey(canonicalise([reply])[0]!)];
        const now = keys(canonicalise(calls[i]!.request.messages));
        expect(now.slice(0, expected.length)).toEqual(expected);
        expect(now).toHaveLength(expected.length + parts.filter(({ type }) => type === 'tool_call').length);
      }
    });

    test('says who asks, always the same', () => {
      const [first] = calls;
      expect(first!.identity).toMatchObject({ requestClass: 'main', depth: 0 });
      expect(first!.identity.agent).toBeUndefined();
      for (const { identity } of calls) expect(identity).toEqual(first!.identity);
    });

    test('leaves a transcript with every reply and every result', () => {
      expect(all.agents.map(({ agent, parentAgent }) => [agent, parentAgent])).toEqual([['', null]]);
      const { entries } = all.agents[0]!;
      const said = entries.flatMap(({ kind, parts }) =>
        kind === 'assistant' ? [parts as unknown as ReplyPart[]] : [],
      );
      const heard = (turns.slice(2) as ReplyPart[][]).map((parts) =>
        canonicalise([{ role: 'assistant', parts }]),
      );
      const witnessed = said.filter((parts) => parts.length > 0);
      expect(witnessed.map((parts) => keys(canonicalise([{ role: 'assistant', parts }])))).toEqual(
        heard.map(keys),
      );
      expect(entries.filter(({ kind }) => kind === 'tool')).toHaveLength(results.length);
      expect(entries.find(({ kind, text }) => kind === 'user' && text?.includes('capitals'))).toBeDefined();
      const ids = new Set(entries.map(({ id }) => id));
      for (const { parent } of entries) expect(parent === null || ids.has(parent)).toBe(true);
    });

    const stops = STOPS.includes(name);
    test(stops ? 'stops at its turn limit' : 'stops when the model refuses more calls', async () => {
      const turn = [verb('exec', 'echo on')];
      const { runs, calls: made } = await rollout(adapter, Array<Scripted>(3).fill(turn), stops ? 3 : 99);
      expect(runs[0]!.timedOut).toBe(false);
      expect(work(made)).toHaveLength(stops ? 3 : 4);
      if (stops) expect(runs[0]!.code).toBe(1);
    });
  });

  if (!installed) test.skip(`skipped: ${name} not installed`, () => undefined);
}

/** Where a harness itself samples the same prompt again: what the tree calls a retry. */
describe('natural retries', () => {
  const cases: [string, string, ReplyPart[]][] = [
    ['agent-loop', 'a malformed call', say('<call>read<arg>path')],
    ['openclaw', 'a call of an unknown tool', [call('frob', {})]],
  ];
  for (const [name, what, bad] of cases) {
    const adapter = adapters.find((candidate) => candidate.name === name)!;
    test(`${name} asks again after ${what}`, async (context) => {
      if (!(await adapter.detect())) return context.skip(`skipped: ${name} not installed`);
      const { runs, calls } = await rollout(adapter, [bad, say('Done.')], 9);
      expect(runs[0]!.code, runs[0]!.stderr).toBe(0);
      const [first, second] = calls.map(({ request }) => adapter.canonicalise(request.messages));
      expect(calls).toHaveLength(2);
      expect(second).toEqual(first);
    });
  }

  test('agent-loop gives up after two', async () => {
    const adapter = adapters.find((candidate) => candidate.name === 'agent-loop')!;
    const { runs, calls } = await rollout(adapter, Array<Scripted>(5).fill(say('<call>read')), 9);
    expect(runs[0]!.code).toBe(0);
    expect(calls).toHaveLength(3);
    expect(runs[0]!.stdout).toBe('<call>read\n');
  });
});

afterAll(async () => {
  const { leaked, created, destroyed } = sandboxes.counters();
  await sandboxes.close();
  expect({ leaked, alive: created - destroyed }).toEqual({ leaked: 0, alive: 0 });
});
