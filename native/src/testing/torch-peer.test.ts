import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findTorchPython, startTorchPeer, TORCH_HINT } from './torch-peer.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'treeward-peer-test-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A stand-in for python that answers as scripts/torch_peer.py does; case `a.double` doubles its inputs. */
function fakePython(): string {
  const file = join(folder, 'python');
  writeFileSync(
    file,
    `#!${process.execPath}
const fs = require('node:fs');
const answer = (reply) => process.stdout.write(JSON.stringify(reply) + '\\n');
answer({ versions: { torch: '0' }, threads: Number(process.argv[process.argv.indexOf('--threads') + 1]) });
let data;
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line);
  if (request.case === 'a.dies') { console.error('out of luck'); process.exit(7); }
  if (request.case === 'a.fails') return answer({ error: 'ValueError: no' });
  if (request.do === 'prepare') {
    const bytes = fs.readFileSync(request.file);
    data = Object.entries(request.inputs).map(([name, { dtype, shape, offset, count }]) => {
      if (dtype !== 'float32') return [name, dtype, shape, [...bytes.subarray(offset, offset + 2 * count)]];
      return [name, dtype, shape, Array.from({ length: count }, (_, i) => 2 * bytes.readFloatLE(offset + 4 * i))];
    });
    return answer({});
  }
  if (request.do === 'results') {
    const arrays = {};
    let offset = 0;
    fs.writeFileSync(request.file, '');
    for (const [name, , , values] of data) {
      fs.appendFileSync(request.file, Buffer.from(new Float32Array(values).buffer));
      arrays[name] = { offset, count: values.length };
      offset += 4 * values.length;
    }
    return answer({ arrays });
  }
  answer(request.do === 'run' ? { ms: request.cold ? 9 : 3 } : request.do === 'memory' ? { bytes: 123 } : {});
});
`,
  );
  chmodSync(file, 0o755);
  return file;
}

test('arrays go there and results come back, times are the peer’s own', async () => {
  const peer = await startTorchPeer({ python: fakePython(), threads: 2 });
  expect(peer.threads).toBe(2);
  const prepared = await peer.prepare('a.double', {
    x: Float32Array.of(1, 2, 3),
    y: { data: Float32Array.of(-1, 0.5, 4, 8).subarray(1), shape: [1, 3] },
    z: Uint16Array.of(0x3f80),
  });
  expect(await prepared.results()).toEqual({
    x: Float32Array.of(2, 4, 6),
    y: Float32Array.of(1, 8, 16),
    z: Float32Array.of(0x80, 0x3f),
  });
  expect(await prepared.run()).toEqual({ overriddenDuration: 3, overriddenIterationCost: 3 });
  expect((await prepared.run({ cold: true })).overriddenDuration).toBe(9);
  expect(await prepared.peakBytes()).toBe(123);
  await prepared.release();
  await peer.close();
});

test('a case that fails says why and leaves the peer alive; a peer that dies says why to all who wait', async () => {
  const peer = await startTorchPeer({ python: fakePython() });
  await expect(peer.prepare('a.fails', {})).rejects.toThrow('ValueError: no');
  const good = await peer.prepare('a.double', { x: Float32Array.of(1) });
  const death = peer.prepare('a.dies', {});
  await expect(Promise.all([death, good.run()])).rejects.toThrow(/exit code 7[\s\S]*out of luck/);
  await expect(good.run()).rejects.toThrow('exit code 7');
  await peer.close();
});

test('a python that does not start is an error, none at all says how to get one', async () => {
  await expect(startTorchPeer({ python: join(folder, 'nothing') })).rejects.toThrow(/ENOENT/);
  const environment = { ...process.env, TREEWARD_CACHE: folder, TREEWARD_PYTHON_BENCH: '' };
  expect(findTorchPython(environment)).toBeUndefined();
  expect(findTorchPython({ TREEWARD_PYTHON_BENCH: '/a/python' })).toBe('/a/python');
  expect(TORCH_HINT).toContain('tools/python-bench.mjs');
});

const python = findTorchPython();
describe.skipIf(python === undefined)('with PyTorch (skipped without: node tools/python-bench.mjs)', () => {
  test('the losses’ cases run and give numbers', { timeout: 120_000 }, async () => {
    const peer = await startTorchPeer({ python });
    expect(peer.versions['torch']).toMatch(/^\d+\.\d+/);
    const row = Float32Array.of(0.5, 0.25, 1, 0);
    const rows = { data: row, shape: [1, 4] };
    const done = { data: Float32Array.of(0, 1, 0, 1), shape: [1, 4] };
    const gae = await peer.prepare(
      'torch_peer_losses.gae_rows',
      { values_RN: rows, rewards_RN: done, done_RN: done },
      { gamma: 1, lambda: 1 },
    );
    expect(await gae.results()).toEqual({
      advantages_RN: Float32Array.of(0.5, 0.75, 0, 1),
      targets_RN: Float32Array.of(1, 1, 1, 1),
    });
    expect((await gae.run({ cold: true })).overriddenDuration).toBeGreaterThan(0);
    await expect(peer.prepare('torch_peer_losses.nothing', {})).rejects.toThrow(/AttributeError/);
    await peer.close();
  });
});
