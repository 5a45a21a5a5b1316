import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readWeights } from '../checkpoint/weights.js';
import { resolveModel } from './resolve-model.js';

const fixture = join(import.meta.dirname, '..', '__fixtures__', 'tiny-llama3');
const sha = 'b'.repeat(40);
const home = (): string => mkdtempSync(join(tmpdir(), 'treeward-hub-'));

/** The two routes of the hub that are used, over the fixture's files. */
let hub: Server;
let endpoint: string;
const asked: string[] = [];
let corrupt = false;

beforeAll(async () => {
  hub = createServer((request, response) => {
    const url = request.url!;
    asked.push(url);
    if (url.startsWith('/api/models/tiny/llama/revision/')) {
      const names = [...readdirSync(fixture), 'pytorch_model.bin', 'README.md'];
      response.end(JSON.stringify({ sha, siblings: names.map((rfilename) => ({ rfilename })) }));
      return;
    }
    const file = /^\/tiny\/llama\/resolve\/b{40}\/(.+)$/.exec(url)?.[1];
    if (!file || !existsSync(join(fixture, file))) {
      response.writeHead(url.startsWith('/api/models/gated/') ? 401 : 404).end();
      return;
    }
    const bytes = readFileSync(join(fixture, file));
    const digest = createHash('sha256').update(bytes).digest('hex');
    response.setHeader('etag', `"${corrupt ? '0'.repeat(64) : digest}"`);
    response.end(bytes);
  });
  await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`;
});
afterAll(() => {
  hub.close();
});

describe('hf: names', () => {
  it('leaves a folder as it is and refuses what is no name', async () => {
    expect(await resolveModel('some/folder')).toBe('some/folder');
    await expect(resolveModel('hf:nothing')).rejects.toMatchObject({ code: 'LEARNER_E_HUB' });
  });

  it('takes what the cache has, by ref or commit, without any network', async () => {
    const HF_HOME = home();
    const model = join(HF_HOME, 'hub', 'models--tiny--llama');
    mkdirSync(join(model, 'refs'), { recursive: true });
    writeFileSync(join(model, 'refs', 'main'), sha);
    cpSync(fixture, join(model, 'snapshots', sha), { recursive: true });
    const env = { HF_HOME, HF_ENDPOINT: 'http://127.0.0.1:1' };
    for (const name of ['hf:tiny/llama', `hf:tiny/llama@${sha}`]) {
      expect(await resolveModel(name, { env })).toBe(join(model, 'snapshots', sha));
    }
    await expect(
      resolveModel('hf:tiny/other', { env: { ...env, HF_HUB_OFFLINE: '1' } }),
    ).rejects.toMatchObject({ code: 'LEARNER_E_HUB', message: expect.stringContaining('HF_HUB_OFFLINE') });
    await expect(resolveModel('hf:tiny/other', { env })).rejects.toMatchObject({
      code: 'LEARNER_E_HUB',
      message: expect.stringContaining('cannot reach'),
    });
  });

  it("downloads into the hub's layout, only what is needed, once", async () => {
    const env = { HF_HOME: home(), HF_ENDPOINT: endpoint };
    asked.length = 0;
    const files: string[] = [];
    const folder = await resolveModel('hf:tiny/llama', { env, onDownload: (file) => files.push(file) });
    expect(folder).toBe(join(env.HF_HOME, 'hub', 'models--tiny--llama', 'snapshots', sha));
    expect(files.sort()).toEqual(readdirSync(fixture).sort());
    expect(lstatSync(join(folder, 'config.json')).isSymbolicLink()).toBe(true);
    const { config, params } = readWeights(folder);
    expect(config).toMatchObject({ family: 'llama', ropeScaling: { type: 'llama3', factor: 8 } });
    expect(params).toEqual(readWeights(fixture).params);
    const requests = asked.length;
    expect(await resolveModel('hf:tiny/llama', { env })).toBe(folder);
    expect(asked).toHaveLength(requests);
  });

  it('says what the hub answered, and keeps no file that arrived wrong', async () => {
    const env = { HF_HOME: home(), HF_ENDPOINT: endpoint };
    await expect(resolveModel('hf:tiny/nothing', { env })).rejects.toThrow(/answered 404/);
    await expect(resolveModel('hf:gated/model', { env })).rejects.toMatchObject({
      code: 'LEARNER_E_HUB',
      hints: ['a gated model needs HF_TOKEN'],
    });
    corrupt = true;
    await expect(resolveModel('hf:tiny/llama', { env })).rejects.toThrow(/another hash/);
    corrupt = false;
    const blobs = join(env.HF_HOME, 'hub', 'models--tiny--llama', 'blobs');
    expect(readdirSync(blobs)).toEqual([]);
    expect(readWeights(await resolveModel('hf:tiny/llama', { env })).config.family).toBe('llama');
  });
});
