import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { randomStream } from '@treeward/base';
import { expect, it } from 'vitest';
import { embeddedConfig } from '../model/config.js';
import { initParams } from '../model/params.js';
import { writeWeights } from '../checkpoint/weights.js';
import { constantRows, packRows } from '../testing/batches.js';
import { TfjsLearner } from '../tfjs-learner.js';

it('is what the learner computes: llama.cpp gives the same log-probabilities', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'treeward-gguf-'));
  // Weights far from their initial values, so that gains, ties and every matrix count.
  const config = embeddedConfig(768, 128, 2);
  const random = randomStream('gguf-test');
  const params = initParams(config, 'gguf-test');
  for (const { shape, data } of params.values()) {
    if (shape.length === 1) data.forEach((x, i) => (data[i] = x + 0.3 * random.normal()));
  }
  params.get('lm_head.weight')!.data.forEach((x, i, data) => (data[i] = x * 10));
  writeWeights(folder, { config, params });

  const learner = await TfjsLearner.open({ checkpoint: folder });
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
  expect(differences.reduce((a, b) => a + b) / differences.length).toBeLessThan(1e-3);
  expect(Math.max(...differences)).toBeLessThan(0.05);
});
