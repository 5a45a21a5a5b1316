// What a sandbox costs: one life (create, run `true`, destroy), many at once, snapshots, and what is left behind.
// Method: medians; the providers take turns, so that a busy minute hits both. Where a Docker daemon can be had (root,
// docker.io, mmdebstrap) it is started for the bench, without effect on the host's network. The plain process is
// `spawn('true')`: what no isolation at all costs.
// Run: npx nx run sandbox:bench -- [--quick] [--out FILE] [--no-docker]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeBenchRows, type BenchRow } from '@treeward/base';
import {
  BubblewrapProvider,
  buildImage,
  daemonUnavailable,
  DockerProvider,
  leftoverFolders,
  startDaemon,
  type Daemon,
  type Sandbox,
} from '@treeward/sandbox';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    'no-docker': { type: 'boolean', default: false },
  },
});
const LIVES = values.quick ? 10 : 40;
const ALIVE = 128;
const SMALL = { memory: 64 * 1024 ** 2, disk: 8 * 1024 ** 2, pids: 64 };

type Provider = BubblewrapProvider | DockerProvider;
const rows: BenchRow[] = [];
const add = (row: BenchRow): void => {
  rows.push(row);
  const ratio = row.ratio === undefined ? '' : `  ratio ${row.ratio.toFixed(2)}`;
  console.log(
    `${row.name.padEnd(36)} ${row.value.toPrecision(4).padStart(9)} ${row.unit}  n=${row.n}${ratio}`,
  );
};
const median = (times: readonly number[]): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)]!;
const lower = { unit: 'ms', better: 'lower' as const };

async function timed(work: () => Promise<unknown> | unknown): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

let count = 0;
async function life(provider: Provider): Promise<void> {
  const sandbox = await provider.open({ id: `life-${count++}`, network: { kind: 'none' } });
  const { code } = await sandbox.run(['/bin/true']);
  if (code !== 0) throw new Error(`true ended with ${code}; nothing timed`);
  await sandbox.destroy();
}

async function lives(providers: readonly Provider[]): Promise<void> {
  const times = new Map<string, number[]>([
    ['process', []],
    ...providers.map(({ name }) => [name, []] as [string, number[]]),
  ]);
  for (const provider of providers) await life(provider);
  for (let i = 0; i < LIVES; i++) {
    times.get('process')!.push(await timed(() => spawnSync('/bin/true')));
    for (const provider of providers) times.get(provider.name)!.push(await timed(() => life(provider)));
  }
  for (const provider of providers) {
    const value = median(times.get(provider.name)!);
    const { create, exec, destroy } = provider.counters().time;
    const config = { create_p50: create.p50, exec_p50: exec.p50, destroy_p50: destroy.p50 };
    add({ name: `${provider.name}/life_cycle_ms`, value, ...lower, n: LIVES, config });
    add({
      name: `${provider.name}/life_cycle/of_process`,
      value,
      ...lower,
      n: LIVES,
      against: 'spawn of true',
      ratio: value / median(times.get('process')!),
    });
    if (provider.name === 'bubblewrap' && times.has('docker')) {
      const docker = median(times.get('docker')!);
      add({
        name: 'bubblewrap/life_cycle/vs_docker',
        value,
        ...lower,
        n: LIVES,
        against: 'docker',
        ratio: docker / value,
      });
    }
  }
}

async function alive(provider: Provider, many: number): Promise<void> {
  let all: Sandbox[] = [];
  const start = await timed(async () => {
    all = await Promise.all(
      Array.from({ length: many }, (_, i) =>
        provider.open({ id: `alive-${i}`, network: { kind: 'none' }, limits: SMALL }),
      ),
    );
    const answers = await Promise.all(all.map((sandbox) => sandbox.run(['/bin/true'])));
    if (answers.some(({ code }) => code !== 0)) throw new Error('a sandbox did not answer; nothing timed');
  });
  const end = await timed(() => Promise.all(all.map((sandbox) => sandbox.destroy())));
  add({ name: `${provider.name}/alive${many}_s`, value: start / 1000, unit: 's', better: 'lower', n: 1 });
  add({ name: `${provider.name}/destroy${many}_s`, value: end / 1000, unit: 's', better: 'lower', n: 1 });
}

async function snapshots(provider: Provider, folder: string): Promise<void> {
  for (let i = 0; i < 200; i++) writeFileSync(join(folder, `f${i}`), 'x'.repeat(2000));
  const trunk = await provider.open({ id: 'trunk', network: { kind: 'none' }, workspaceFrom: folder });
  const take: number[] = [];
  const fork: number[] = [];
  for (let i = 0; i < 10; i++) {
    await trunk.write('changed', String(i));
    let snapshot: Awaited<ReturnType<Sandbox['snapshot']>> | undefined;
    take.push(await timed(async () => (snapshot = await trunk.snapshot())));
    let branch: Sandbox | undefined;
    fork.push(
      await timed(async () => {
        branch = await provider.open({
          id: `fork-${i}`,
          network: { kind: 'none' },
          workspaceFrom: snapshot!,
        });
      }),
    );
    await branch!.destroy();
    snapshot!.release();
  }
  await trunk.destroy();
  add({ name: `${provider.name}/snapshot_ms/200_files`, value: median(take), ...lower, n: take.length });
  add({ name: `${provider.name}/fork_ms/200_files`, value: median(fork), ...lower, n: fork.length });
}

const folder = mkdtempSync(join(tmpdir(), 'tw-bench-'));
const providers: Provider[] = [new BubblewrapProvider({ run: 'bench' })];
let daemon: Daemon | null = null;
try {
  const unavailable = values['no-docker'] ? '--no-docker' : daemonUnavailable();
  if (unavailable) console.log(`no docker rows: ${unavailable}`);
  else {
    daemon = await startDaemon();
    await buildImage({ socket: daemon.socket, say: console.log });
    providers.push(new DockerProvider({ socket: daemon.socket, run: 'bench' }));
  }
  await lives(providers);
  await alive(providers[0]!, ALIVE);
  if (providers[1] && !values.quick) await alive(providers[1], 32);
  await snapshots(providers[0]!, folder);
  for (const provider of providers) await provider.close(); // all of them first: folders are counted of this whole process
  const left = leftoverFolders(process.pid).length;
  for (const provider of providers) {
    const { leaked, created } = provider.counters();
    add({
      name: `${provider.name}/leaked`,
      value: leaked + left,
      unit: 'sandboxes',
      better: 'lower',
      n: created,
    });
  }
} finally {
  for (const provider of providers) await provider.close();
  await daemon?.stop();
  rmSync(folder, { recursive: true, force: true });
}
if (values.out) writeBenchRows(values.out, rows);
