import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { embeddedConfig, spawnLearner } from '@treeward/learner';
import { BpeTokenizer } from '@treeward/policy';
import { root } from './run-cli.js';

const tokenizer = join(root, 'datasets/cold-start/tokenizer.json');

/** A checkpoint of random weights with the real tokenizer, and a config that plays scripted demonstrations in our own loop. */
export async function tinyRun(steps: number): Promise<{ directory: string; config: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'tiny-run-'));
  const checkpoint = join(directory, 'checkpoint');
  mkdirSync(checkpoint);
  const config = {
    ...embeddedConfig(BpeTokenizer.load(tokenizer).vocabSize),
    hiddenSize: 32,
    layers: 1,
    intermediateSize: 64,
  };
  const { learner, child } = await spawnLearner(
    join(directory, 'l.sock'),
    { init: { config, seed: 1 }, threads: 1 },
    { scratch: directory },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await learner.save(checkpoint);
  await learner.close();
  await ended;
  rmSync(join(checkpoint, 'optimizer.safetensors'), { force: true });
  cpSync(tokenizer, join(checkpoint, 'tokenizer.json'));
  const file = join(directory, 'config.toml');
  writeFileSync(
    file,
    `[run]
name = "tiny"
steps = ${steps}
[policy]
checkpoint = "${checkpoint}"
[engine]
kind = "scripted"
[rollouts]
groups = { agent-loop = 2 }
group_size = 3
concurrency = 3
[algo]
type = "rloo"
mismatch_max = 100 # prepared replies: their log-probabilities are nobody's
[learner]
threads = 1
[eval]
tasks = 0
`,
  );
  return { directory, config: file };
}
