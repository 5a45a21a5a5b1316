import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { readJson } from '@treeward/base';
import { loadTasks } from '../formats/load-tasks.js';
import { codeOfAsync, folderOf } from '../testing/tasks.js';
import { loadHub } from './hub.js';

const row = {
  prompt: 'Do it.',
  hook_code: 'python3 reward/test.py .',
  input_files: [{ file_path: 'reward/test.py', content: 'print(1)' }],
  id: 'r1',
};

let close: (() => Promise<void>) | null = null;
afterEach(async () => {
  await close?.();
  close = null;
});

/** A server with the hub's API for one data set. */
async function hub(
  files: Record<string, string | Uint8Array>,
  card: unknown = { license: 'apache-2.0' },
  status = 200,
): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const url = decodeURIComponent(request.url ?? '');
    asked.push(url);
    if (status !== 200) response.writeHead(status).end();
    else if (url === '/api/datasets/own/set/revision/main') {
      response.end(
        JSON.stringify({
          sha: 'abc',
          siblings: Object.keys(files).map((rfilename) => ({ rfilename })),
          cardData: card,
          tags: ['license:mit'],
        }),
      );
    } else {
      const file = files[url.replace('/datasets/own/set/resolve/abc/', '')];
      if (file === undefined) response.writeHead(404).end();
      else response.end(file);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => new Promise((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

describe('loadHub', () => {
  it('fetches rows once, says and keeps the licence', async () => {
    const { url, asked } = await hub({ 'data/a b.jsonl': `${JSON.stringify(row)}\n`, 'README.md': 'x' });
    const cache = folderOf({});
    const said: string[] = [];
    const set = await loadHub('own/set', { url, cache, say: (line) => said.push(line) });
    const { path } = set;
    expect(set).toMatchObject({ name: 'own/set', revision: 'abc', licence: 'apache-2.0' });
    expect(said[0]).toBe('own/set at abc: licence apache-2.0');
    expect(loadTasks('clawgym', path).tasks[0]).toMatchObject({ id: 'r1' });
    expect(readJson(join(cache, 'own+set/abc/dataset.json'))).toMatchObject({
      licence: 'apache-2.0',
      revision: 'abc',
    });
    expect(asked).toHaveLength(2);
    expect(await loadHub('own/set', { url, cache })).toEqual(set);
    expect(asked).toHaveLength(3);
    expect(existsSync(join(dirname(path), '../README.md'))).toBe(false);
  });

  it('reads Parquet through hyparquet into rows', async () => {
    const file = parquetWriteBuffer({
      columnData: [
        { name: 'prompt', data: ['Do it.'], type: 'STRING' },
        { name: 'hook_code', data: ['python3 reward/test.py .'], type: 'STRING' },
        { name: 'id', data: [17n], type: 'INT64' },
        { name: 'input_files', data: [row.input_files], type: 'JSON' },
      ],
    });
    const { url } = await hub({ 'data/train-00000.parquet': new Uint8Array(file) }, {});
    const said: string[] = [];
    const { path } = await loadHub('own/set', { url, cache: folderOf({}), say: (line) => said.push(line) });
    expect(said[0]).toContain('licence mit');
    expect(loadTasks('clawgym', path).tasks[0]).toMatchObject({ id: '17', query: 'Do it.' });
  });

  it.each([
    ['a name that is none', 'set', {}, 200, 'HUB_E_NAME'],
    ['nothing to read', 'own/set', { 'README.md': '' }, 200, 'HUB_E_EMPTY'],
    ['several files of rows', 'own/set', { 'a.jsonl': '', 'b.jsonl': '' }, 200, 'HUB_E_CHOICE'],
    ['a path that climbs out', 'own/set', { '../a.jsonl': '' }, 200, 'TASK_E_PATH'],
    ['a gated set', 'own/set', {}, 401, 'HUB_E_GATED'],
    ['a set that is not there', 'own/set', {}, 404, 'HUB_E_MISSING'],
  ])('%s', async (_, name, files, status, code) => {
    const { url } = await hub(files as Record<string, string>, {}, status);
    expect(await codeOfAsync(() => loadHub(name, { url, cache: folderOf({}) }))).toBe(code);
  });

  it('without a network: HUB_E_UNREACHABLE', async () => {
    expect(
      await codeOfAsync(() => loadHub('own/set', { url: 'http://127.0.0.1:9', cache: folderOf({}) })),
    ).toBe('HUB_E_UNREACHABLE');
  });
});
