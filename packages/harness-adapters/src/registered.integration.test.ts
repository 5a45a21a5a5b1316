import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BubblewrapProvider, nodeMount } from '@treeward/sandbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
// Only what the package offers to everybody.
import {
  adapterByName,
  adapters,
  canonicaliser,
  registerAdapter,
  toolCall,
  type HarnessAdapter,
} from './index.js';
import { call, inOrder, runScripted, say } from './scripted/index.js';

/** The CLI of somebody else: asks, does what it is told by a shell, asks again. */
const CLI = `
import { execSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
const messages = [{ role: 'user', content: '[tiny] ' + process.argv[2] }];
const tools = [{ type: 'function', function: { name: 'sh', description: 'Runs a command.', parameters: {
  type: 'object', properties: { line: { type: 'string' } }, required: ['line'] } } }];
const note = (entry) => appendFileSync(process.env.HOME + '/tiny.log', JSON.stringify(entry) + '\\n');
for (;;) {
  const response = await fetch(process.env.TINY_URL + '/v1/chat/completions', {
    method: 'POST', headers: { authorization: 'Bearer ' + process.env.TINY_KEY, 'x-tiny-run': 'run-1' },
    body: JSON.stringify({ model: 'policy', messages, tools }),
  });
  const { message } = (await response.json()).choices[0];
  messages.push(message);
  note(message);
  if (!message.tool_calls?.length) { console.log(message.content); break; }
  for (const { id, function: { arguments: args } } of message.tool_calls) {
    const content = execSync(JSON.parse(args).line, { encoding: 'utf8' });
    messages.push({ role: 'tool', tool_call_id: id, content });
  }
}
`;

let folder: string;
const sandboxes = new BubblewrapProvider({ run: 'registered' });

/** A whole harness in the user's own code. */
const tiny = (): HarnessAdapter => {
  const sh = (shell: (...values: string[]) => string): HarnessAdapter['tools']['read'] => ({
    tool: 'sh',
    arguments: ['line'],
    shell,
  });
  return {
    name: 'tiny',
    pin: '0.1.0',
    dialect: 'openai-chat',
    tools: {
      read: sh((path) => `cat '${path}'`),
      write: sh((path, content) => `printf %s '${content}' > '${path}'`),
      edit: sh((path, before, after) => `sed -i 's/${before}/${after}/' '${path}'`),
      exec: sh((command) => command),
    },
    limits: { memory: 512 * 1024 ** 2 },
    detect: async () => ({
      version: '0.1.0',
      mounts: [{ host: join(folder, 'tiny.mjs'), inside: '/opt/tiny.mjs' }, nodeMount().mount],
      entry: '/opt/tiny.mjs',
    }),
    prepare: async () => undefined,
    command: (sandbox, installed, task, endpoint) => ({
      argv: [nodeMount().argv0, installed.entry, task.prompt],
      run: {
        cwd: sandbox.workspace,
        env: {
          PATH: '/usr/bin:/bin',
          HOME: sandbox.home,
          TINY_URL: endpoint.baseUrl,
          TINY_KEY: endpoint.key,
        },
      },
    }),
    readTranscript: async (sandbox) =>
      new Map([['tiny.log', await sandbox.read(`${sandbox.home}/tiny.log`)]]),
    canonicalise: canonicaliser({ user: (text) => text.replace(/^(?:\[tiny\] )+/, '') }),
    identify: ({ headers }) => ({ session: headers['x-tiny-run'] ?? '', requestClass: 'main' }),
  };
};

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiny-harness-'));
  writeFileSync(join(folder, 'tiny.mjs'), CLI);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await sandboxes.close();
});

test('a harness of somebody else runs like ours, without a change in this package', async () => {
  const remove = registerAdapter(tiny());
  try {
    expect(() => registerAdapter(tiny())).toThrow(expect.objectContaining({ code: 'HARNESS_E_NAME' }));
    const adapter = adapterByName('tiny');
    const { name, arguments: args } = toolCall(adapter.tools.edit, ['notes.txt', 'beta', 'BETA']);
    const { runs, calls, files, transcript } = await runScripted(adapter, sandboxes, {
      tasks: [{ prompt: 'Shout.', maxTurns: 5 }],
      files: { 'notes.txt': 'alpha\nbeta\n' },
      script: inOrder([[call(name, args)], say('Done.')]),
    });
    expect(runs[0], runs[0]!.stderr).toMatchObject({ code: 0, stdout: 'Done.\n' });
    expect(files).toEqual({ 'notes.txt': 'alpha\nBETA\n' });
    expect(calls.map(({ identity }) => identity.session)).toEqual(['run-1', 'run-1']);
    expect(adapter.canonicalise(calls[0]!.request.messages)).toEqual([{ role: 'user', text: 'Shout.' }]);
    expect(Buffer.from(transcript.get('tiny.log')!).toString()).toContain('Done.');
  } finally {
    remove();
  }
  expect(adapters.some(({ name }) => name === 'tiny')).toBe(false);
});
