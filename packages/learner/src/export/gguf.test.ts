import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { randomStream } from '@treeward/base';
import { expect, it } from 'vitest';
import { embeddedConfig, type ModelConfig } from '../model/config.js';
import { initParams } from '../model/params.js';
import { writeWeights } from '../checkpoint/weights.js';
import { constantRows, packRows } from '../testing/batches.js';
import { TfjsLearner } from '../tfjs-learner.js';

interface Case {
  name: string;
  config: ModelConfig;
  type: 'f32' | 'f16';
  /** Largest mean difference of log-probabilities. */
  mean: number;
}
const small = embeddedConfig(768, 128, 2);
const cases: Case[] = [
  { name: 'qwen3, tied and scaled', config: small, type: 'f32', mean: 1e-3 },
  { name: 'qwen3, half precision', config: small, type: 'f16', mean: 3e-3 },
  {
    name: 'llama 3.1: other rotation, scaled frequencies, grouped heads, embeddings tied as transformers ties them',
    config: {
      ...small,
      family: 'llama',
      tie: 1,
      ropeScaling: {
        type: 'llama3',
        factor: 8,
        lowFreqFactor: 1,
        highFreqFactor: 4,
        originalMaxPositions: 64,
      },
    },
    type: 'f32',
    mean: 1e-3,
  },
];

it.each(cases)('llama.cpp gives the same log-probabilities: $name', async ({ config, type, mean }) => {
  const folder = mkdtempSync(join(tmpdir(), 'treeward-gguf-'));
  // Weights far from their initial values, so that gains, ties and every matrix count.
  const random = randomStream('gguf-test');
  const params = initParams(config, 'gguf-test');
  for (const { shape, data } of params.values()) {
    if (shape.length === 1) data.forEach((x, i) => (data[i] = x + 0.3 * random.normal()));
  }
  const louder = config.tie === 1 ? 3 : 10;
  params.get('lm_head.weight')!.data.forEach((x, i, data) => (data[i] = x * louder));
  writeWeights(folder, { config, params });

  const learner = await TfjsLearner.open({ checkpoint: folder, publishType: type });
  const rows = [40, 150].map((n) => Array.from({ length: n }, () => random.below(768)));
  const { logprobs_T } = await learner.score(
    packRows(
      rows,
      constantRows(rows, () => 1),
    ),
  );
  const { weights } = await learner.publish(folder);
  expect(readFileSync(weights.path).subarray(0, 4).toString()).toBe('GGUF');
  const rowsFile = join(folder, 'rows.json');
  writeFileSync(rowsFile, JSON.stringify(rows));
  const script = join(import.meta.dirname, '..', 'testing', 'llama-logprobs.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [script, weights.path, rowsFile]);

  const theirs = (JSON.parse(stdout) as (number | null)[][]).flat();
  const differences = theirs.flatMap((x, t) => (x === null ? [] : [Math.abs(x - logprobs_T[t]!)]));
  expect(differences).toHaveLength(188);
  expect(differences.reduce((a, b) => a + b) / differences.length).toBeLessThan(mean);
  expect(Math.max(...differences)).toBeLessThan(0.05);
});
