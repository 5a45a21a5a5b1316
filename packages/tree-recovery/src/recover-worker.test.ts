import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashTokens, RecordWriter } from '@treeward/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import recoverInWorker from './recover-worker.js';
import { readTree } from './tree-file.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-worker-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Through the real writer: the gateway's part, then the controller's. */
async function writeRollout(): Promise<void> {
  const gateway = RecordWriter.open(directory);
  gateway.append({
    type: 'rollout.start',
    version: 1,
    rolloutId: 'r7',
    time: 0,
    template: 't',
    labels: { harness: 'agent-loop' },
  });
  gateway.append({
    type: 'call.start',
    call: 0,
    time: 1,
    dialect: 'openai-chat',
    headers: {},
    bodyHash: 'h',
    messages: { parent: null, kept: 0, appended: [{ role: 'user', text: 'go' }] },
    tools: { hash: 'none', specs: [] },
    requested: {},
    unknown: [],
  });
  const prompt = Int32Array.of(1, 2, 3);
  gateway.append({
    type: 'call.prompt',
    call: 0,
    prompt: { parent: null, kept: 0, appended: gateway.tokens(prompt), length: 3, hash: hashTokens(prompt) },
    graft: { reason: 'root', keptMessages: 0 },
  });
  gateway.append({
    type: 'call.sampled',
    call: 0,
    time: 2,
    tokens: gateway.tokens(Int32Array.of(4, 5)),
    logprobs: gateway.logprobs(Float32Array.of(-1, -2)),
    finish: 'stop',
    policy: { id: 'p', version: 3 },
    sampling: { temperature: 0.7, bannedIds: [] },
    reply: { parts: [{ type: 'text', text: 'done' }] },
  });
  gateway.append({
    type: 'call.end',
    call: 0,
    time: 3,
    firstByte: 2.5,
    delivery: 'complete',
    cause: 'done',
    status: 200,
  });
  await gateway.close();
  const controller = RecordWriter.open(directory);
  controller.append({ type: 'process.exit', time: 4, code: 0, signal: null, timedOut: false });
  controller.append({ type: 'verifier', time: 5, reward: 1, scores: { a: 1 } });
  controller.append({ type: 'rollout.end', time: 6, status: 'completed' });
  await controller.close();
}

describe('recoverInWorker', () => {
  it('writes tree.bin beside the record and answers with a summary that can cross threads', async () => {
    await writeRollout();
    const outcome = recoverInWorker({ directory });
    expect(structuredClone(outcome)).toEqual(outcome);
    expect(outcome).toMatchObject({
      ok: true,
      path: join(directory, 'tree.bin'),
      summary: { rolloutId: 'r7', trainedTokens: 2, verdict: { kind: 'trainable' }, reward: 1 },
    });
    const tree = readTree(join(directory, 'tree.bin'));
    expect([...tree.tokens_T]).toEqual([1, 2, 3, 4, 5]);
    expect([...tree.logprobs_T]).toEqual([Number.NaN, Number.NaN, Number.NaN, -1, -2]);
    expect(tree.calls[0]).toMatchObject({
      policyVersion: 3,
      temperature: 0.7,
      startTime: 1,
      finishTime: 2.5,
    });
  });

  it('answers with a plain error and writes nothing when there is no record', () => {
    const outcome = recoverInWorker({ directory });
    expect(outcome).toMatchObject({ ok: false, error: { code: 'RECORD_E_MISSING' } });
    expect(existsSync(join(directory, 'tree.bin'))).toBe(false);
  });
});
