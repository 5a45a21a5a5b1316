import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomStream, rpcClient } from '@treeward/base';
import { Service, type ServiceOptions } from './service.js';

/** Listens after `delay` ms. `dies`: ends instead; `mute`: never does. Ends with its parent's channel. */
const CHILD = `
import { createServer } from 'node:http';
import { existsSync, readFileSync, unlinkSync } from 'node:fs';
const [socket, text] = process.argv.slice(2);
const { delay, dies, mute } = JSON.parse(text);
process.on('disconnect', () => process.exit(0));
if (dies) process.exit(7);
setTimeout(() => {
  if (mute) return;
  if (existsSync(socket)) unlinkSync(socket);
  createServer((request, response) => response.end('null')).listen(socket);
}, delay);
`;

let work: string;
let starts = 0;
const open: Service[] = [];
beforeEach(() => {
  starts = 0;
  work = mkdtempSync(join(tmpdir(), 'tw-svc-'));
  writeFileSync(join(work, 'child.mjs'), CHILD);
});
afterEach(async () => {
  for (const service of open.splice(0)) await service.stop();
  rmSync(work, { recursive: true, force: true });
});

function service(config: () => unknown, more: Partial<ServiceOptions> = {}): Service {
  const one = new Service({
    name: 'test',
    entry: join(work, 'child.mjs'),
    socketPath: join(work, 's.sock'),
    config: () => {
      starts++;
      return config();
    },
    logFile: join(work, 'log'),
    runDirectory: work,
    ...more,
  });
  open.push(one);
  return one;
}

const kill = ({ pid }: Service): void => {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  } catch {
    // already dead, its exit not yet noticed
  }
};

describe('a child that is killed', () => {
  it('at any instant, also while it is being started again, comes back', async () => {
    const random = randomStream('service-kills');
    const one = service(() => ({ delay: 30 }), { maxRestarts: 1000 });
    await one.start();
    for (let k = 0; k < 20; k++) {
      kill(one);
      await sleep(random.next() * 150);
    }
    await one.ready();
    const client = rpcClient(join(work, 's.sock'));
    expect(await client.call('ping', null, { retryFor: 5000 })).toBeNull();
    client.close();
    expect(one.restarts).toBeGreaterThan(5);
    expect(starts).toBe(one.restarts + 1);
    expect(one.awayMs).toBeGreaterThan(0);
    expect(one.lost.aborted).toBe(false);
  });

  it('over and over is given up, and says so to who waits', async () => {
    let dies = false;
    const one = service(() => ({ delay: 0, dies }), { maxRestarts: 3 });
    await one.start();
    dies = true;
    kill(one);
    if (!one.lost.aborted) await new Promise((resolve) => one.lost.addEventListener('abort', resolve));
    await expect(one.ready()).rejects.toMatchObject({
      code: 'PROCESS_E_RESTARTS',
      message: expect.stringContaining('ended (7)') as string,
    });
    expect(starts).toBe(4); // the first and three more
  });

  it('before it ever answered is an error of its start', async () => {
    await expect(service(() => ({ dies: true })).start()).rejects.toMatchObject({ code: 'PROCESS_E_START' });
  });

  it('for saying nothing within its time is an error of its start too', async () => {
    const mute = service(() => ({ delay: 0, mute: true }), { startTimeout: 300 });
    await expect(mute.start()).rejects.toMatchObject({ code: 'PROCESS_E_START' });
  });

  it('because it hangs comes back', async () => {
    const one = service(() => ({ delay: 0 }), { watch: { everyMs: 50, questions: 3 } });
    await one.start();
    const { pid } = one;
    await sleep(300); // answers all the while
    expect(one.pid).toBe(pid);
    process.kill(pid!, 'SIGSTOP');
    while (one.restarts === 0) await sleep(10);
    await one.ready();
    expect(one.pid).not.toBe(pid);
  });

  it('is not started again after it was told to stop, at whatever instant', async () => {
    for (const wait of [0, 20, 100]) {
      const one = service(() => ({ delay: 30 }));
      await one.start();
      kill(one);
      await sleep(wait);
      await one.stop();
      const then = starts;
      await sleep(100);
      expect(starts).toBe(then);
      expect(one.pid).toBeUndefined();
    }
  });
});
