import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashTokens, RecordWriter } from '@treeward/telemetry';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { recoverCommand, rolloutDirectories } from './recover-command.js';

const root = mkdtempSync(join(tmpdir(), 'treeward-recover-'));
const rollout = join(root, 'rollouts', 'r1');
afterAll(() => rmSync(root, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

/** A title request without tools, then one call of the work. */
beforeAll(async () => {
  const writer = RecordWriter.open(rollout);
  writer.append({ type: 'rollout.start', version: 1, rolloutId: 'r1', time: 0, template: 't', labels: {} });
  [[], [{ name: 'exec' }]].forEach((specs, call) => {
    const prompt = Int32Array.of(1, 2, call);
    const user = { role: 'user', text: `request ${call}` };
    writer.append({
      type: 'call.start',
      call,
      time: 10 * call,
      dialect: 'test',
      headers: {},
      bodyHash: '',
      messages: { parent: null, kept: 0, appended: [user] },
      tools: { hash: String(specs.length), specs },
      requested: {},
      unknown: [],
    });
    const appended = writer.tokens(prompt);
    writer.append({
      type: 'call.prompt',
      call,
      prompt: { parent: null, kept: 0, appended, length: 3, hash: hashTokens(prompt) },
      graft: { reason: 'root', keptMessages: 0 },
    });
    writer.append({
      type: 'call.sampled',
      call,
      time: 10 * call + 1,
      tokens: writer.tokens(Int32Array.of(7)),
      logprobs: writer.logprobs(Float32Array.of(-1)),
      finish: 'stop',
      policy: { id: 'p', version: 0 },
      sampling: { temperature: 1 },
      reply: { parts: [{ type: 'text', text: 'done' }] },
    });
    writer.append({
      type: 'call.end',
      call,
      time: 10 * call + 2,
      firstByte: 10 * call + 1,
      delivery: 'complete',
      cause: 'done',
      status: 200,
    });
  });
  writer.append({ type: 'verifier', time: 30, reward: 1, scores: {} });
  await writer.close();
});

async function run(...flags: string[]): Promise<string> {
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  await recoverCommand()
    .exitOverride()
    .parseAsync([root, ...flags], { from: 'user' });
  vi.restoreAllMocks();
  return written.join('');
}

describe('treeward recover', () => {
  it('prints a table, and under a preset why a call does not train', async () => {
    expect(await run()).toContain('2 of 2 sampled tokens train');
    const table = await run('--preset', 'treeward');
    expect(table).toContain('1 of 2 sampled tokens train');
    expect(table).toContain('no: side call');
  });

  it('writes JSON, Graphviz, ATIF and segments', async () => {
    expect(JSON.parse(await run('--json'))).toMatchObject({ rollouts: [{ rolloutId: 'r1', reward: 1 }] });
    expect(await run('--dot')).toMatch(/^digraph "r1" \{/);
    const atif = JSON.parse(await run('--atif')) as { steps: { source: string }[] };
    expect(atif.steps.map(({ source }) => source)).toEqual(['user', 'agent']);
    const segments = (await run('--segments', '--preset', 'treeward')).trim().split('\n');
    expect(segments.map((line) => (JSON.parse(line) as { call: number }).call)).toEqual([1]);
  });

  it('refuses two formats at once and a preset that is none', async () => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    await expect(run('--json', '--dot')).rejects.toThrow(/cannot be used with/);
    await expect(run('--preset', 'other')).rejects.toThrow(/treeward, clawgym2/);
  });
});

describe('rolloutDirectories', () => {
  it('takes a rollout, a run, or a folder of rollouts, and names what is none', () => {
    for (const folder of [rollout, root, join(root, 'rollouts')]) {
      expect(rolloutDirectories(folder)).toEqual([rollout]);
    }
    expect(() => rolloutDirectories(join(root, 'nothing'))).toThrow(
      expect.objectContaining({ code: 'CLI_E_NO_RECORD' }),
    );
  });
});
