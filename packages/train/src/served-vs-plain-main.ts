/**
 * What the gateway's own way of serving is worth: the same weights, tasks and seeds, once as `treeward serve` serves them
 * (canonical form, prompts grown out of sampled ids) and once as a plain chat endpoint does (every request rendered and
 * encoded from its text as it came). Rows: mean reward of each, and their paired difference with its 95 % interval.
 * usage: nx run train:served-vs-plain -- [--quick] [--out FILE] [--checkpoint DIR] [--harness NAME] [--tasks N] [--seeds N]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { RunFolder, writeBenchRows } from '@treeward/base';
import { BubblewrapProvider } from '@treeward/sandbox';
import { checkpointFolder } from './checkpoint-folder.js';
import { loadConfig, type TrainConfig } from './config.js';
import { engineSpec, templateOf } from './engine-spec.js';
import { exportSampler } from './export-sampler.js';
import { mean } from './metrics.js';
import { pairedDifference } from './paired.js';
import { planHeldOut } from './plan-step.js';
import { Stack } from './processes/stack.js';
import { stackPool } from './stack-pool.js';

type Way = 'served' | 'plain';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
    checkpoint: { type: 'string', default: 'datasets/cold-start' },
    harness: { type: 'string', default: 'claude-code' },
    tasks: { type: 'string' },
    seeds: { type: 'string' },
  },
});
const tasks = Number(values.tasks ?? (values.quick ? 12 : 72));
const seeds = Array.from({ length: Number(values.seeds ?? (values.quick ? 1 : 2)) }, (_, seed) => seed);

const rewards: Record<Way, (number | null)[]> = { served: [], plain: [] };
const work = mkdtempSync(join(tmpdir(), 'served-vs-plain-'));
try {
  for (const seed of seeds) {
    const config = loadConfig(
      [],
      [`run.seed=${seed}`, `eval.tasks=${tasks}`, `eval.harnesses={ ${JSON.stringify(values.harness)} = 1 }`],
    );
    for (const way of ['served', 'plain'] as const) rewards[way].push(...(await evaluate(way, config, seed)));
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}

// A rollout that an infrastructure failure took is missing on both sides.
const both = rewards.served.flatMap((served, i) => {
  const plain = rewards.plain[i]!;
  return served === null || plain === null ? [] : [{ served, plain }];
});
const served = both.map((pair) => pair.served);
const plain = both.map((pair) => pair.plain);
const { difference, low, high } = pairedDifference(plain, served, 0);
const n = both.length;
const config = {
  checkpoint: values.checkpoint,
  harness: values.harness,
  tasks,
  missing: rewards.served.length - n,
};
process.stdout.write(
  `${values.harness}, ${n} rollouts each: served ${mean(served).toFixed(3)}, plain chat endpoint ${mean(plain).toFixed(3)}, ` +
    `difference ${difference.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]\n`,
);
if (values.out !== undefined) {
  const row = { unit: 'reward', better: 'higher', n, config } as const;
  writeBenchRows(
    values.out,
    [
      { ...row, name: `served/reward/${values.harness}`, value: mean(served) },
      { ...row, name: `plain/reward/${values.harness}`, value: mean(plain) },
      {
        ...row,
        name: `served/reward/minus_plain/${values.harness}`,
        value: difference,
        interval: [low, high],
        against: 'a chat endpoint that renders and encodes every request from its text, same weights',
      },
    ],
    { seeds },
  );
}

async function evaluate(way: Way, config: TrainConfig, seed: number): Promise<(number | null)[]> {
  const run = new RunFolder(join(work, `${way}-${seed}`));
  const checkpoint = await checkpointFolder(values.checkpoint, '--checkpoint');
  const template = templateOf(config.policy.template, checkpoint);
  const sandboxes = new BubblewrapProvider();
  const stack = new Stack({
    runDirectory: run.root,
    template,
    engine: engineSpec(config.engine, template, join(run.root, 'scripts')),
    gateway: { plain: way === 'plain' },
  });
  try {
    await stack.start();
    await stack.publish({ id: checkpoint, version: 0 }, exportSampler(checkpoint, join(run.root, 'weights')));
    const pool = stackPool(stack, sandboxes, run, {
      concurrency: config.rollouts.concurrency,
      perHarness: config.rollouts.per_harness,
    });
    let done = 0;
    const { specs } = planHeldOut(config, run, way);
    const results = await pool.run(specs, () => {
      process.stderr.write(`\rseed ${seed} ${way}: ${++done}/${specs.length} `);
    });
    process.stderr.write('\n');
    return results.map(({ reward }) => reward);
  } finally {
    await stack.close();
    await sandboxes.close();
  }
}
