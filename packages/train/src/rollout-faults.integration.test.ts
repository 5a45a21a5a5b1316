import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomStream, readJson, RunFolder } from '@treeward/base';
import type { RolloutResult } from '@treeward/rollout';
import { BubblewrapProvider, leftoverFolders } from '@treeward/sandbox';
import { Stack } from './processes/stack.js';
import { planSoak, scriptsOf } from './soak/soak-plan.js';
import { stackPool } from './stack-pool.js';
import { brokenRecords, judgeFaults, printFaults, type FaultRow } from './testing/faults/fault-table.js';
import { LocalMachine, template } from './testing/faults/local-machine.js';
import { runCli, startCli } from './testing/run-cli.js';

const rows: FaultRow[] = [];
const work = mkdtempSync(join(tmpdir(), 'tw-faults-'));
const shape = { rollouts: 10, harnesses: { 'agent-loop': 1 }, seed: 'faults', wallMs: 60_000 };
/** All stages, a hung engine and 20 random instants take minutes; one stage and the rest run always. */
const full = process.env['TREEWARD_TEST_FULL'] === '1';
const LONG = 'skipped: takes minutes; TREEWARD_TEST_FULL=1 runs it';
const undisturbed = new Map<string, number | null>();
afterAll(() => {
  printFaults(rows);
  rmSync(work, { recursive: true, force: true });
});

/** No rollout lost, none counted twice, no fake zero; and, where nothing is the policy's doing, the undisturbed rewards. */
function expectWhole(row: FaultRow, equal = row.planned): void {
  rows.push(row);
  expect(row).toMatchObject({ lost: 0, twice: 0, fakeZeros: 0, equal });
}

const planned = new RunFolder(join(work, 'plan'));
const specs = planSoak(planned, shape);
const stack = new Stack({
  runDirectory: planned.root,
  template,
  engine: { kind: 'scripted', scripts: scriptsOf(planned), template },
});
const sandboxes = new BubblewrapProvider({ run: 'faults' });

/** All rollouts once, in a folder of their own; `disturb` hears when one is done, and at the start. */
async function play(name: string, disturb?: (done: number) => void): Promise<RolloutResult[]> {
  const run = new RunFolder(join(work, name));
  const pool = stackPool(stack, sandboxes, run, { concurrency: 3, retries: 4 });
  let done = 0;
  const counted: RolloutResult[] = [];
  disturb?.(0);
  await pool.run(specs, (result) => {
    counted.push(result);
    disturb?.(++done);
  });
  expect(
    brokenRecords(
      run,
      counted.map(({ rolloutId }) => rolloutId),
    ),
  ).toEqual([]);
  return counted;
}

const ids = (): string[] => [...undisturbed.keys()].sort(); // as planned: `soak-00000` first
const kill = (service: 'engine' | 'gateway', signal: NodeJS.Signals = 'SIGKILL'): void => {
  const { pid } = stack.services[service];
  if (pid !== undefined) process.kill(pid, signal);
};
/** Its successor too, while that is still starting. */
const killTwice = async (service: 'engine' | 'gateway'): Promise<void> => {
  const { restarts } = stack.services[service];
  kill(service);
  while (stack.services[service].restarts === restarts) await sleep(5);
  await sleep(60);
  kill(service);
};

beforeAll(async () => {
  await stack.start();
  for (const { rolloutId, reward } of await play('undisturbed')) undisturbed.set(rolloutId, reward);
  expect(undisturbed.size).toBe(shape.rollouts);
  expect([...undisturbed.values()].some((reward) => reward! > 0)).toBe(true);
});

describe('services that fail under rollouts', { timeout: 120_000 }, () => {
  afterAll(async () => {
    await stack.close();
    await sandboxes.close();
  });

  it('engine killed in the middle of calls, and again while it starts', async () => {
    const results = await play('engine', (done) => {
      if (done === 1) setTimeout(() => void killTwice('engine'), 150);
      if (done === 4) setTimeout(() => kill('engine'), 150);
    });
    expect(stack.services.engine.restarts).toBe(3);
    expectWhole(judgeFaults('engine killed mid-stream ×3', ids(), results, undisturbed));
  });

  it('engine that hangs for two seconds', async (context) => {
    if (!full) return context.skip(LONG);
    const results = await play('engine-hangs', (done) => {
      if (done !== 2) return;
      kill('engine', 'SIGSTOP');
      setTimeout(() => kill('engine', 'SIGCONT'), 2000);
    });
    expectWhole(judgeFaults('engine hung for 2 s', ids(), results, undisturbed));
  });

  it('gateway killed, and again while it starts', async () => {
    const results = await play('gateway', (done) => {
      if (done === 2) setTimeout(() => void killTwice('gateway'), 120);
    });
    expect(stack.services.gateway.restarts).toBe(2);
    expectWhole(judgeFaults('gateway restarted ×2', ids(), results, undisturbed));
  });
});

describe('harness, sandbox, checker and clock', () => {
  const machine = new LocalMachine();
  afterAll(() => machine.close());
  const one = (fault: string, result: RolloutResult, honest: number): FaultRow =>
    judgeFaults(fault, [result.rolloutId], [result], new Map([[result.rolloutId, honest]]));

  it('harness that hangs before its first call: left out', async () => {
    const result = await machine.play({
      adapter: () => ({ command: () => ({ argv: ['/bin/sleep', '600'], run: {} }) }),
      limits: { wallMs: 1500 },
    });
    expectWhole(one('harness hung, no call', result, 1), 0);
    expect(result).toMatchObject({ reward: null, fault: { kind: 'harness', code: 'HARNESS_E_NO_CALL' } });
  });

  it('harness that hangs after its work: the time is the policy’s, the work is judged', async () => {
    const result = await machine.play({
      adapter: (inner) => ({
        command: (...args) => {
          const command = inner.command(...args);
          return { ...command, argv: ['/bin/sh', '-c', '"$@"; sleep 600', 'sh', ...command.argv] };
        },
      }),
      limits: { wallMs: 3000 },
    });
    expectWhole(one('harness hung after its work', result, 1));
    expect(result).toMatchObject({ reward: 1, fault: { kind: 'timeout', code: 'ROLLOUT_E_WALL' } });
  });

  it('engine that takes a call and never answers, until time runs out: ours', async () => {
    const result = await machine.play({ engineHangs: true, limits: { wallMs: 3000 } });
    expectWhole(one('engine hung for ever', result, 1), 0);
    expect(result).toMatchObject({ reward: null, fault: { kind: 'engine', code: 'ENGINE_E_AWAY' } });
  });

  it('harness that crashes at once: left out', async () => {
    const result = await machine.play({
      adapter: () => ({ command: () => ({ argv: ['/bin/false'], run: {} }) }),
    });
    expectWhole(one('harness crashed, no call', result, 1), 0);
    expect(result).toMatchObject({ reward: null, fault: { kind: 'harness' } });
  });

  it('out of memory by what the agent ran: its own, judged by what it left', async () => {
    const bomb = 'python3 -c "x = []\nwhile True: x.append(bytearray(8 << 20))"';
    const result = await machine.play({ commands: ['printf right > answer.txt', bomb] });
    expectWhole(one('out of memory', result, 1));
    expect(result.fault).toMatchObject({ kind: 'policy', code: 'POLICY_E_MEMORY' });
  });

  it('disk filled by the agent: its own, judged by what it left', async () => {
    const result = await machine.play({
      commands: ['printf right > answer.txt', 'head -c 1G /dev/zero > big; head -c 1G /dev/zero > /tmp/big'],
    });
    expectWhole(one('disk full', result, 1));
    expect(result.reward).toBe(1);
  });

  it('a tree that cannot be collected: 0, the policy’s own', async () => {
    const result = await machine.play({ commands: ['truncate -s 100G huge'] });
    expectWhole(one('workspace too large to collect', result, 1), 0);
    expect(result).toMatchObject({ reward: 0, fault: { kind: 'policy', code: 'POLICY_E_WORKSPACE' } });
  });

  it('token and call limits: the policy’s own, counted apart', async () => {
    const result = await machine.play({ limits: { maxTokens: 1 } });
    expectWhole(one('token limit', result, 1));
    expect(result).toMatchObject({ reward: 1, fault: { kind: 'policy', code: 'POLICY_E_TOKENS' } });
  });

  it('checker that crashes: left out', async () => {
    const result = await machine.play({ checker: 'exit 3\n' });
    expectWhole(one('verifier crashed', result, 1), 0);
    expect(result).toMatchObject({ reward: null, fault: { kind: 'verifier', code: 'VERIFIER_E_EXIT' } });
  });

  it('checker that loops: left out', async () => {
    const result = await machine.play({ checker: 'while :; do :; done\n' });
    expectWhole(one('verifier looped', result, 1), 0);
    expect(result).toMatchObject({ reward: null, fault: { kind: 'verifier', code: 'VERIFIER_E_TIMEOUT' } });
  });

  it('checker that the rollout broke: 0, the policy’s own', async () => {
    const result = await machine.play({ checker: 'test -e answer.txt && exit 3\necho 0\n' });
    expectWhole(one('verifier broken by the policy', result, 1), 0);
    expect(result).toMatchObject({ reward: 0, fault: { kind: 'policy', code: 'POLICY_E_BROKE_CHECKER' } });
  });

  it('a clock that jumps a day ahead and back, again and again', async () => {
    const real = Date.now.bind(Date);
    let jump = 0;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => real() + jump);
    const sweeper = new BubblewrapProvider({ run: 'clock' });
    try {
      const result = await machine.play({
        during: () => {
          jump = jump === 0 ? 86_400_000 : jump > 0 ? -86_400_000 : 0;
          void sweeper.sweep(); // must end no sandbox for its age
        },
      });
      expectWhole(one('clock jumped ±1 day', result, 1));
      expect(result.fault).toBeNull();
      expect(result.time.total).toBeLessThan(60_000);
    } finally {
      clock.mockRestore();
    }
  });
});

describe('the worker itself, killed with kill -9', () => {
  const soakArguments = (out: string, rollouts: number): string[] => [
    ...['soak', '--out', out, '--rollouts', String(rollouts), '--concurrency', '3'],
    ...['--seed', shape.seed, '--wall-seconds', '60', '--json'],
  ];
  const rolloutsIn = (out: string): string[] =>
    existsSync(join(out, 'rollouts')) ? readdirSync(join(out, 'rollouts')) : [];
  const resultsIn = (out: string): RolloutResult[] =>
    rolloutsIn(out).flatMap((name) => {
      const file = join(out, 'rollouts', name, 'result.json');
      return existsSync(file) ? [readJson<RolloutResult>(file)] : [];
    });
  const recordHas = (out: string, text: string): boolean =>
    rolloutsIn(out).some((name) => {
      const file = join(out, 'rollouts', name, 'telemetry.ndjson');
      return existsSync(file) && readFileSync(file, 'utf8').includes(text);
    });

  /** Runs to the end what was killed, and looks at what there is then. */
  async function finish(
    fault: string,
    out: string,
    pids: readonly number[],
    rollouts: number,
  ): Promise<void> {
    const last = await runCli(soakArguments(out, rollouts));
    expect(last.stderr).not.toContain('error');
    expect(last.code).toBe(0);
    expect((JSON.parse(last.stdout) as { leaks: string[] }).leaks).toEqual([]);
    expect(pids.flatMap((pid) => leftoverFolders(pid))).toEqual([]);
    const wanted = ids().slice(0, rollouts);
    expect(brokenRecords(new RunFolder(out), wanted)).toEqual([]);
    expectWhole(judgeFaults(fault, wanted, resultsIn(out), undisturbed));
  }

  const always = new Set(['after grading']);
  it.for<[string, (out: string) => boolean]>([
    ['while it plans', (out: string) => existsSync(join(out, 'tasks'))],
    ['while services start', (out: string) => existsSync(join(out, 'engine.log'))],
    ['with sandboxes open', (out: string) => rolloutsIn(out).length > 0],
    ['in the middle of calls', (out: string) => recordHas(out, '"call.sampled"')],
    ['after harnesses ended', (out: string) => recordHas(out, '"process.exit"')],
    ['after grading', (out: string) => recordHas(out, '"verifier"')],
    ['with some results written', (out: string) => resultsIn(out).length > 1],
  ])('%s', { timeout: 120_000 }, async ([stage, reached], context) => {
    if (!full && !always.has(stage)) return context.skip(LONG);
    const out = join(work, stage.replaceAll(' ', '-'));
    const worker = startCli(soakArguments(out, 4));
    const deadline = performance.now() + 60_000;
    while (!reached(out) && worker.child.exitCode === null && performance.now() < deadline) await sleep(2);
    worker.child.kill('SIGKILL');
    await worker.done;
    await finish(`worker killed ${stage}`, out, [worker.child.pid!], 4);
  });

  it('at 20 random instants of one run', { timeout: 300_000 }, async (context) => {
    if (!full) return context.skip(LONG);
    const out = join(work, 'random');
    const random = randomStream('instants');
    const pids: number[] = [];
    let killed = 0;
    for (let k = 0; k < 20; k++) {
      const worker = startCli(soakArguments(out, shape.rollouts));
      pids.push(worker.child.pid!);
      // The first second is start-up; what follows are a few rollouts at once.
      await Promise.race([worker.done, sleep(600 + random.next() * 1500)]);
      if (worker.child.exitCode === null) killed++;
      worker.child.kill('SIGKILL');
      await worker.done;
      // What this instant would have undone: a finished run starts over.
      if (resultsIn(out).length === shape.rollouts)
        rmSync(join(out, 'rollouts', ids()[k % 10]!), { recursive: true });
    }
    expect(killed).toBeGreaterThanOrEqual(15);
    await finish('worker killed at 20 random instants', out, pids, shape.rollouts);
  });
});
