import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { INTERFACE_VERSION } from './binding.js';
import { getBackendInfo } from './index.js';
import { candidatePaths, loadFrom, resolveBackend } from './load-binding.js';

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'treeward-native-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('backend info says what computes', () => {
  expect(getBackendInfo()).toMatchObject({ threads: 1, napi: 8 });
  expect(getBackendInfo().device).not.toBe('');
});

test('every failure is listed, and what to do', () => {
  const broken = join(directory, 'broken.node');
  writeFileSync(broken, 'not a shared object');
  const other = join(directory, 'other.cjs');
  writeFileSync(other, 'module.exports = { interfaceVersion: 0 };');
  const missing = join(directory, 'missing.node');
  let thrown: (Error & { code?: string; hints?: string[] }) | undefined;
  try {
    loadFrom([missing, broken, other]);
  } catch (error) {
    thrown = error as Error;
  }
  expect(thrown?.code).toBe('NATIVE_E_LOAD');
  expect(thrown?.message).toMatch(/missing\.node: no such file/);
  expect(thrown?.message).toMatch(/broken\.node: .*(invalid ELF header|file too short)/);
  expect(thrown?.message).toContain(`built for interface 0, this package needs ${INTERFACE_VERSION}`);
  expect(thrown?.message).toMatch(/npx nx run native:build-native/);
});

test('a named file replaces the search', () => {
  expect(candidatePaths({ TREEWARD_NATIVE_PATH: '/x/y.node' })).toEqual(['/x/y.node']);
  expect(candidatePaths({})).toHaveLength(2);
});

test('auto takes what there is; asking for a backend that is not there is an error', () => {
  const none = { available: false, reason: 'CUDA error 100, no CUDA-capable device' } as const;
  const some = {
    available: true,
    device: 'x',
    sm: '9.0',
    driver: 1,
    cudaRuntime: 1,
    memoryBytes: 1,
  } as const;
  expect([undefined, '', 'auto', 'cpu'].map((wanted) => resolveBackend(wanted, none))).toEqual(
    Array(4).fill('cpu'),
  );
  expect(['auto', 'cuda', 'cpu'].map((wanted) => resolveBackend(wanted, some))).toEqual([
    'cuda',
    'cuda',
    'cpu',
  ]);
  expect(() => resolveBackend('cuda', none)).toThrow(
    expect.objectContaining({
      code: 'NATIVE_E_BACKEND',
      message: expect.stringMatching(/no CUDA-capable/) as string,
    }),
  );
  expect(() => resolveBackend('metal', some)).toThrow(expect.objectContaining({ code: 'NATIVE_E_BACKEND' }));
});

test('loads on several worker threads at once and after the main thread', async () => {
  const { path } = getBackendInfo();
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    const one = Float32Array.of(-1);
    const result = require(workerData).policyLoss(
      { logp_T: one, logpOld_T: one, logpRollout_T: one, advantages_T: Float32Array.of(2), mask_T: Float32Array.of(1) },
      { clipLow: 0.2, clipHigh: 0.2, truncation: 2, normaliser: 1 });
    parentPort.postMessage(result.loss);`;
  const run = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(code, { eval: true, workerData: path });
      worker.once('message', resolve);
      worker.once('error', reject);
    });
  expect(await Promise.all([run(), run(), run()])).toEqual([-2, -2, -2]);
});
