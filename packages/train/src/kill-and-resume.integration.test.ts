import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMetrics, type Metrics } from './metrics.js';
import { leftovers, processesWith } from './testing/leftovers.js';
import { runCli, startCli } from './testing/run-cli.js';
import { tinyRun } from './testing/tiny-run.js';

/** What a repeated step must reproduce to the last bit; times are another day's weather. */
const comparable = (run: string): Metrics[] =>
  readMetrics(join(run, 'metrics.jsonl')).map((line) =>
    Object.fromEntries(Object.entries(line).filter(([name]) => !/^(time|perf)\//.test(name))),
  );

/** The weights after the last step, and the optimizer's moments. */
const state = (run: string): Buffer[] =>
  ['model.safetensors', 'optimizer.safetensors'].map((file) =>
    readFileSync(join(run, 'checkpoints', 'step_000003', file)),
  );

const rolloutsOfStep = (run: string, step: number): number => {
  const folder = join(run, 'rollouts');
  if (!existsSync(folder)) return 0;
  const prefix = `s${String(step).padStart(6, '0')}-`;
  return readdirSync(folder).filter(
    (name) => name.startsWith(prefix) && existsSync(join(folder, name, 'result.json')),
  ).length;
};

/** Waits until the second step is in progress: its first rollout is finished, its last is not. */
async function middleOfStepTwo(run: string): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (rolloutsOfStep(run, 2) < 1) {
    if (Date.now() > deadline) throw new Error('the second step never started');
    await sleep(5);
  }
}

describe('killing a process in the middle of a step', () => {
  let base: Awaited<ReturnType<typeof tinyRun>>;
  let expected: Metrics[];
  let expectedState: Buffer[];
  const runOf = (name: string): string => join(base.directory, name);
  const train = (name: string, ...more: string[]): string[] => [
    'train',
    '@',
    base.config,
    '--run-dir',
    runOf(name),
    '--json',
    ...more,
  ];

  beforeAll(async () => {
    base = await tinyRun(3);
    const whole = await runCli(train('whole'));
    expect(whole.stderr + whole.stdout).toContain('step 3/3');
    expect(whole.code).toBe(0);
    expected = comparable(runOf('whole'));
    expectedState = state(runOf('whole'));
    expect(expected).toHaveLength(3);
    expect(expected.some((line) => line['optim/grad_norm']! > 0)).toBe(true);
  });
  afterAll(() => rmSync(base.directory, { recursive: true, force: true }));

  it('controller: --resume gives metrics and weights of the uninterrupted run, bit for bit, and sweeps what was left', async () => {
    const run = runOf('controller');
    const { child, done } = startCli(train('controller'));
    await middleOfStepTwo(run);
    child.kill('SIGKILL');
    await done;
    const resumed = await runCli(['train', '--resume', '--run-dir', run, '--json']);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(comparable(run)).toEqual(expected);
    expect(state(run).every((bytes, i) => bytes.equals(expectedState[i]!))).toBe(true);
    expect(leftovers('s000002')).toEqual([]);
    expect(processesWith(run)).toEqual([]);
  });

  it.each(['gateway', 'engine', 'learner'])(
    '%s: the run goes on and its metrics stay the same; --resume finds nothing to do',
    async (name) => {
      const run = runOf(name);
      const { done } = startCli(train(name));
      await middleOfStepTwo(run);
      const [pid] = processesWith(`${name}-main.js`, `/${name}.sock`).filter((candidate) =>
        ownedBy(candidate, run),
      );
      expect(pid, `no ${name} process`).toBeDefined();
      process.kill(pid!, 'SIGKILL');
      const outcome = await done;
      expect(outcome.code, outcome.stderr).toBe(0);
      expect(comparable(run)).toEqual(expected);
      expect(state(run).every((bytes, i) => bytes.equals(expectedState[i]!))).toBe(true);
      const again = await runCli(['train', '--resume', '--run-dir', run, '--json']);
      expect(again.code, again.stderr).toBe(0);
      expect(comparable(run)).toEqual(expected);
      expect(leftovers('s000002')).toEqual([]);
    },
  );
});

/** Services carry their run's folder in the environment. */
function ownedBy(pid: number, run: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TREEWARD_RUN=${run}\0`);
  } catch {
    return false;
  }
}
