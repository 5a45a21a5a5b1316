import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const REQUIRED = ['progress/step', 'policy/rollout_kl', 'optim/grad_norm'];
const HARNESSES = ['claude-code', 'openclaw'];

/** What is wrong with the metrics a smoke training left, in words; an empty list when nothing is. */
export function smokeProblems(runFolder, { steps = 2 } = {}) {
  const file = join(runFolder, 'metrics.jsonl');
  if (!existsSync(file)) return [`${file} is missing`];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const rows = lines.map((line) => JSON.parse(line));
  const named = new Set(rows.flatMap((row) => Object.keys(row)));
  const wanted = [...REQUIRED, ...HARNESSES.map((name) => `reward/all/${name}/mean`)];
  const problems = wanted.filter((name) => !named.has(name)).map((name) => `metric ${name} is missing`);
  const seen = new Set(rows.map((row) => row['progress/step']).filter((step) => step !== undefined));
  if (seen.size < steps) problems.push(`${seen.size} steps instead of ${steps}`);
  return problems;
}
