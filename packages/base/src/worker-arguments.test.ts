import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { WORKER_ARGUMENTS } from './worker-arguments.js';

it('a thread loads no ES module by require, so that it can be stopped while it loads', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'treeward-worker-'));
  const module = join(folder, 'module.mjs');
  writeFileSync(module, 'export const answer = 42;');
  const thread = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     const said = (() => { try { return require(workerData).answer; } catch (error) { return error.code; } })();
     import(workerData).then(({ answer }) => parentPort.postMessage([said, answer]));`,
    { eval: true, workerData: module, execArgv: [...WORKER_ARGUMENTS] },
  );
  const said = await new Promise((done, fail) => thread.once('message', done).once('error', fail));
  await thread.terminate();
  rmSync(folder, { recursive: true });
  expect(said).toEqual(['ERR_REQUIRE_ESM', 42]);
});
