import type { SandboxSession } from '@treeward/sandbox';
import { describe, expect, it } from 'vitest';
import { adapterByName, adapters } from './registry.js';
import { sessionUuid } from './session-id.js';
import { toolCall } from './tool-call.js';
import type { Endpoint, HarnessTask, Installed } from './types.js';

const endpoint: Endpoint = { baseUrl: 'http://127.0.0.1:8080', key: 'key-1', rolloutId: 'run/7' };
const installed: Installed = { version: '1', mounts: [], entry: '/opt/entry' };
const task: HarnessTask = { prompt: '--help "me"', maxTurns: 6 };

/** Files in memory; `run` answers as `find -printf` would. */
function fakeSession(files: Record<string, string> = {}): SandboxSession & { files: Record<string, string> } {
  return {
    id: 's',
    workspace: '/workspace',
    home: '/tmp/home',
    files,
    write: async (path, data) => {
      files[path] = String(data);
    },
    read: async (path) => Buffer.from(files[path]!),
    run: async (argv) => ({
      code: 0,
      signal: null,
      stdout: Object.keys(files)
        .filter((path) => path.startsWith(`${argv[1]}/`))
        .map((path) => `${path.slice(argv[1]!.length + 1)}\0`)
        .join(''),
      stderr: '',
      timedOut: false,
      truncated: false,
      cpuSeconds: 0,
      wallMs: 0,
    }),
  };
}

describe.each(adapters.map((adapter) => [adapter.name, adapter] as const))('%s', (_, adapter) => {
  it('runs in the workspace, in its own HOME, with the key and address it was given', async () => {
    const sandbox = fakeSession();
    await adapter.prepare(sandbox, endpoint);
    const { argv, run } = adapter.command(sandbox, installed, task, endpoint);
    expect(argv).toContain('/opt/entry');
    expect(run).toMatchObject({ cwd: '/workspace', env: { HOME: '/tmp/home' } });
    const given = JSON.stringify([argv, run, sandbox.files]);
    expect(given).toContain('http://127.0.0.1:8080');
    expect(given).toContain('key-1');
  });

  it('never takes a prompt for an option', () => {
    const { argv, run } = adapter.command(fakeSession(), installed, task, endpoint);
    expect(argv).not.toContain(task.prompt);
    expect([run.stdin, argv.at(-1)]).toContainEqual(expect.stringContaining(task.prompt));
  });

  it('gives the same command for the same rollout', () => {
    const command = (): unknown => adapter.command(fakeSession(), installed, task, endpoint);
    expect(command()).toEqual(command());
  });
});

describe('what a task may ask for', () => {
  const server = { name: 'oracle', command: '/opt/node', args: ['/opt/server.mjs'], env: { A: 'b "c"' } };
  const given = async (name: string, more: Partial<HarnessTask>): Promise<string> => {
    const sandbox = fakeSession();
    const adapter = adapterByName(name);
    await adapter.prepare(sandbox, endpoint, { ...task, ...more });
    const { argv, run } = adapter.command(sandbox, installed, { ...task, ...more }, endpoint);
    return [...argv, ...Object.values(run.env ?? {}), ...Object.values(sandbox.files)].join('\n');
  };

  it.each(['claude-code', 'codex', 'opencode', 'openclaw', 'openclaw-gateway'])(
    '%s: MCP servers',
    async (name) => {
      expect(await given(name, { mcpServers: [server] })).toMatch(
        /oracle[^]*\/opt\/server\.mjs[^]*b \\"c\\"/,
      );
      await expect(given(name, { mcpServers: [{ ...server, name: 'a.b' }] })).rejects.toMatchObject({
        code: 'HARNESS_E_MCP_NAME',
      });
      expect(await given(name, {})).not.toContain('oracle');
    },
  );

  it.each([
    ['pi', { mcpServers: [server] }, 'mcpServers'],
    ['agent-loop', { mcpServers: [server] }, 'mcpServers'],
    ['agent-loop', { resume: true }, 'resume'],
    ['agent-loop', { thinking: 'high' }, 'thinking'],
  ] as const)('%s refuses what it cannot do: %o', async (name, more, field) => {
    await expect(given(name, more)).rejects.toMatchObject({
      code: 'HARNESS_E_UNSUPPORTED',
      data: { harness: name, field },
    });
  });

  it.each([
    ['claude-code', 'medium'],
    ['codex', 'model_reasoning_effort="medium"'],
    ['pi', '--thinking\nmedium'],
    ['openclaw', '--thinking\nmedium'],
    ['openclaw-gateway', '--thinking\nmedium'],
    ['opencode', '"reasoningEffort":"medium"'],
  ])('%s is told how much to think', async (name, told) => {
    expect(await given(name, { thinking: 'medium' })).toContain(told);
    expect(await given(name, { thinking: 'off' })).toBe(await given(name, {}));
    expect(adapterByName(name).thinks).toBe(true);
    expect(await given(name, {})).not.toContain(told);
  });

  it.each(['claude-code', 'codex', 'opencode', 'openclaw'])(
    '%s offers fewer tools unless all are asked for',
    async (name) => {
      expect(await given(name, { tools: 'small' })).toBe(await given(name, {}));
      expect((await given(name, { tools: 'all' })).length).toBeLessThan((await given(name, {})).length);
    },
  );
});

describe('readTranscript', () => {
  it.each([
    ['claude-code', '/tmp/home/.claude/projects', '-workspace/x.jsonl'],
    ['openclaw', '/tmp/home/.openclaw/agents/main/sessions', 'x.jsonl'],
    ['agent-loop', '/tmp/home/.agent-loop', 'transcript.jsonl'],
    ['codex', '/tmp/home/.codex/sessions', '2026/11/29/rollout-x.jsonl'],
    ['pi', '/tmp/home/.pi/agent/sessions', '--workspace--/x.jsonl'],
  ])('of %s takes what lies below %s', async (name, directory, path) => {
    const sandbox = fakeSession({ [`${directory}/${path}`]: '{}', '/tmp/home/other.jsonl': '' });
    const files = await adapterByName(name).readTranscript(sandbox, task, endpoint);
    expect([...files]).toEqual([[path, Buffer.from('{}')]]);
  });
});

describe('toolCall', () => {
  it('speaks each harness', () => {
    expect(toolCall(adapterByName('claude-code').tools.edit, ['a', 'x', 'y'])).toEqual({
      name: 'Edit',
      arguments: { file_path: 'a', old_string: 'x', new_string: 'y' },
    });
    expect(toolCall(adapterByName('openclaw').tools.edit, ['a', 'x', 'y'])).toEqual({
      name: 'edit',
      arguments: { path: 'a', edits: [{ oldText: 'x', newText: 'y' }] },
    });
  });

  it('refuses another number of values', () => {
    expect(() => toolCall(adapterByName('openclaw').tools.read, [])).toThrow(
      expect.objectContaining({ code: 'HARNESS_E_ARGUMENTS' }),
    );
  });
});

it('sessionUuid is a version 4 UUID of the rollout', () => {
  expect(sessionUuid('a')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(sessionUuid('a')).toBe(sessionUuid('a'));
  expect(sessionUuid('a')).not.toBe(sessionUuid('b'));
});
