import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';

const LOOP = fileURLToPath(new URL('./loop.mjs', import.meta.url));

let directory: string;
let server: Server;
let bodies: { messages: { role: string; content: string | null; tool_call_id?: string }[] }[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'loop-'));
  bodies = [];
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(directory, { recursive: true });
});

type Answer = (response: Parameters<RequestListener>[1]) => void;
const message =
  (value: object): Answer =>
  (response) =>
    void response.end(
      JSON.stringify({ choices: [{ message: { role: 'assistant', content: null, ...value } }] }),
    );
const say = (content: string): Answer => message({ content });
const call = (name: string, args: unknown): Answer =>
  message({
    tool_calls: [{ id: 'c', type: 'function', function: { name, arguments: JSON.stringify(args) } }],
  });
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(code, headers).end('{}');
const drop: Answer = (response) => {
  response.writeHead(200, { 'content-length': '99' });
  response.write('{', () => response.destroy());
};

/** The loop as a process, against these answers in turn. */
async function run(
  answers: Answer[],
  maxTurns = 10,
): Promise<{ code: number | null; stdout: string; stderr: string; log: { type: string }[] }> {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
      (answers[bodies.length - 1] ?? say('out of script'))(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const transcript = join(directory, 'log/transcript.jsonl');
  const child = spawn(process.execPath, [LOOP], {
    cwd: directory,
    env: {
      PATH: process.env['PATH'],
      LOOP_BASE_URL: `http://127.0.0.1:${port}/v1`,
      LOOP_MAX_TURNS: String(maxTurns),
      LOOP_TRANSCRIPT: transcript,
    },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  child.stdin.end('Do it.');
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const log = readFileSync(transcript, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  return { code, stdout, stderr, log };
}

const results = (): (string | null)[] =>
  bodies
    .at(-1)!
    .messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content);

it('uses each tool, and answers every mistake with a text', async () => {
  writeFileSync(join(directory, 'a.txt'), 'one two one\n');
  const { code, stdout } = await run(
    [
      call('read', { path: 'a.txt' }),
      call('edit', { path: 'a.txt', oldText: 'two', newText: '$& 2' }),
      call('edit', { path: 'a.txt', oldText: 'one', newText: '1' }),
      call('edit', { path: 'a.txt', oldText: '', newText: '1' }),
      call('write', { path: 'new/b.txt', content: 'ä' }),
      call('write', { path: 'b.txt' }),
      call('read', { path: 'none.txt' }),
      call('exec', { command: 'cat a.txt; exit 3' }),
      call('exec', { command: 'true' }),
      call('toString', {}),
      say('Done.'),
    ],
    20,
  );
  expect(results()).toEqual([
    'one two one\n',
    'Edited a.txt',
    'Error: oldText occurs 2 times in a.txt, not once',
    'Error: oldText occurs 0 times in a.txt, not once',
    'Wrote 2 bytes to new/b.txt',
    'Error: write needs "content", a string',
    expect.stringMatching(/^Error: ENOENT/),
    'one $& 2 one\n(exit code 3)',
    '(no output)',
    'Error: no tool "toString"; there are read, write, edit, exec',
  ]);
  expect([code, stdout]).toEqual([0, 'Done.\n']);
  expect(existsSync(join(directory, 'b.txt'))).toBe(false);
});

it('does not wait for a background process', async () => {
  const started = Date.now();
  const { code } = await run([call('exec', { command: 'sleep 60 & echo $!' }), say('Done.')]);
  process.kill(Number(results()[0]), 'SIGKILL');
  expect(code).toBe(0);
  expect(Date.now() - started).toBeLessThan(30_000);
});

it('survives a busy model and a broken connection with the same body', async () => {
  const { code, log } = await run([status(529), drop, status(429, { 'retry-after': '1' }), say('Done.')]);
  expect(code).toBe(0);
  expect(bodies).toHaveLength(4);
  for (const body of bodies) expect(body).toEqual(bodies[0]);
  expect(log.filter(({ type }) => type === 'model.error')).toHaveLength(3);
});

it.each([
  ['a refusal', status(400)],
  ['an error that is final', status(500, { 'x-should-retry': 'false' })],
])('ends at once with code 2 on %s', async (_, answer) => {
  const { code, stderr, log } = await run([answer]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^HTTP \d00/);
  expect(bodies).toHaveLength(1);
  expect(log.at(-1)).toMatchObject({ type: 'end', reason: 'error' });
});

it('samples the same prompt again after a malformed call, twice at most, and counts those calls', async () => {
  const bad = say('<call>read<arg>');
  const { code, log } = await run([bad, bad, call('exec', { command: 'true' }), bad, say('never')], 4);
  expect(bodies).toHaveLength(4);
  expect(bodies[1]).toEqual(bodies[0]);
  expect(bodies[2]).toEqual(bodies[0]);
  expect(log.filter(({ type }) => type === 'discarded')).toHaveLength(2);
  expect(code).toBe(0); // the turn limit leaves no room for another try: the malformed text is the last word
});

it('stops at its turn limit with code 1', async () => {
  const { code, log } = await run(Array<Answer>(3).fill(call('exec', { command: 'true' })), 2);
  expect(code).toBe(1);
  expect(bodies).toHaveLength(2);
  expect(log.at(-1)).toMatchObject({ type: 'end', reason: 'max-turns' });
});
