import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRecord } from '@treeward/telemetry';
import { root, runCli, startCli, type CliRun } from './testing/run-cli.js';

interface Ready {
  url: string;
  key: string;
  harnesses: Record<string, string>;
}

// The shipped policy on a loopback port, used by plain HTTP clients and, as somebody else's model, by a recorded harness.
describe('serve and record', () => {
  const work = mkdtempSync(join(tmpdir(), 'serve-'));
  const records = join(work, 'served');
  let server: CliRun;
  let ready: Ready;

  beforeAll(async () => {
    server = startCli(['serve', 'datasets/cold-start', '--port', '0', '--record', records, '--json']);
    ready = await new Promise<Ready>((resolve, reject) => {
      let text = '';
      server.child.stdout!.on('data', (piece: Buffer) => {
        text += piece.toString();
        if (text.includes('\n')) resolve(JSON.parse(text) as Ready);
      });
      void server.done.then(({ stderr }) => reject(new Error(stderr)));
    });
  }, 60_000);

  afterAll(async () => {
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.done;
    expect(code, stderr).toBe(0);
    await expect(fetch(`${ready.url}/v1/models`)).rejects.toThrow();
  }, 30_000);

  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  const json = async (reply: Promise<Response>): Promise<any> => (await reply).json();
  const post = (path: string, body: unknown, key = ready.key): Promise<Response> =>
    fetch(ready.url + path, { method: 'POST', headers: { 'x-api-key': key }, body: JSON.stringify(body) });

  it('answers in every dialect, counts true tokens, and knows its key', async () => {
    const messages = [{ role: 'user', content: 'hello' }];
    const chat = await json(post('/v1/chat/completions', { messages }));
    expect(chat.object).toBe('chat.completion');
    const anthropic = await json(post('/v1/messages', { messages, max_tokens: 20 }));
    expect(anthropic.type).toBe('message');
    const responses = await json(post('/v1/responses', { input: 'hello' }));
    expect(responses.object).toBe('response');
    for (const used of [
      chat.usage.prompt_tokens,
      anthropic.usage.input_tokens,
      responses.usage.input_tokens,
    ]) {
      expect(used).toBe(chat.usage.prompt_tokens);
    }
    expect((await post('/v1/messages', { messages }, 'wrong')).status).toBe(401);
    expect(await (await fetch(`${ready.url}/metrics`)).text()).toMatch(/^# TYPE /m);
  });

  it('takes off the wrapping of the harness that the path names', async () => {
    const ask = async (path: string): Promise<number> => {
      const content = 'Do it.\n<system-reminder>now</system-reminder>';
      const reply = await json(post(path, { max_tokens: 20, messages: [{ role: 'user', content }] }));
      return reply.usage.input_tokens;
    };
    await ask('/claude-code/v1/messages');
    const harnesses = readdirSync(records).map((id) => /^serve-(.*)-\d+$/.exec(id)?.[1]);
    expect(harnesses).toContain('claude-code');
    expect(harnesses).toContain('agent-loop');
    const { events } = readRecord(
      join(
        records,
        readdirSync(records).find((id) => id.includes('claude-code'))!,
      ),
    );
    const start = events.find(({ type }) => type === 'call.start');
    expect(JSON.stringify(start)).toContain('[note] now');
  });

  it('records a harness on an upstream of text and prints its tree, of which nothing trains', async () => {
    const out = join(work, 'record');
    const loop = join(root, 'packages/harness-adapters/src/agent-loop/loop.mjs');
    const workspace = mkdtempSync(join(work, 'workspace-'));
    writeFileSync(join(workspace, 'settings.txt'), 'colour = red\n');
    const { code, stdout, stderr } = await runCli(
      [
        ...['record', '--harness', 'agent-loop', '--upstream', 'openai', '--model', 'policy'],
        ...[
          '--upstream-url',
          `${ready.harnesses['agent-loop']}/v1`,
          '--key-env',
          'SERVED_KEY',
          '--out',
          out,
          '--json',
        ],
        ...[
          '--',
          '/bin/sh',
          '-c',
          `cd ${workspace} && echo 'Read settings.txt' | ${process.execPath} ${loop}`,
        ],
      ],
      { SERVED_KEY: ready.key },
    );
    expect(existsSync(join(out, 'telemetry.ndjson')), stderr).toBe(true);
    const { tree, code: own } = JSON.parse(stdout);
    expect(own).toBe(code);
    expect(tree.calls.length).toBeGreaterThan(0);
    for (const call of tree.calls) expect(call.untrained).toMatch(/logprobs/);
    const { events } = readRecord(out);
    expect(events.find(({ type }) => type === 'engine')).toMatchObject({ facts: { ids: false } });
    expect(JSON.stringify(events)).not.toContain(ready.key);
    expect(events.at(-1)).toMatchObject({ type: 'rollout.end', status: 'completed' });
  });

  it('says what is missing before it starts anything', async () => {
    const { code, stderr } = await runCli(['record', '--model', 'x', '--key-env', 'NOT_SET', '--', 'claude']);
    expect(code).toBe(2);
    expect(stderr).toContain('CLI_E_UPSTREAM');
    expect(stderr).toContain('NOT_SET');
    const unknown = await runCli(['record', '--model', 'x', '--', 'some-program']);
    expect(unknown.stderr).toContain('CLI_E_HARNESS');
    const port = await runCli(['serve', 'datasets/cold-start', '--port', 'eighty']);
    expect(port.stderr).toContain('CLI_E_NUMBER');
  });
});
