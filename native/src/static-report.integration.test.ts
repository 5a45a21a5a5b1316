import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const script = fileURLToPath(new URL('../scripts/static-report.mjs', import.meta.url));

test(
  'no kernel spills more or runs at lower occupancy than the committed report says',
  { timeout: 900_000 },
  () => {
    const { status, stdout } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
    expect(stdout).toMatch(/no new spills, no lower occupancy\n$|^static report skipped: no nvcc/);
    expect(status).toBe(0);
  },
);

test('the committed report covers every kernel file on both architectures', () => {
  const path = new URL('../reports/static.json', import.meta.url);
  const { kernels } = JSON.parse(readFileSync(path, 'utf8')) as {
    kernels: Record<string, { spills: number }>;
  };
  const stems = new Set(Object.keys(kernels).map((name) => name.split('/').slice(0, 2).join('/')));
  for (const arch of ['sm_80', 'sm_90']) {
    for (const stem of ['policy_loss', 'value_loss', 'causal_gae', 'linear_logprob', 'tree_attention']) {
      expect(stems).toContain(`${arch}/${stem}`);
    }
  }
});
