import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const script = fileURLToPath(new URL('../scripts/static-report.mjs', import.meta.url));
const kernels = new URL('native/kernels/', import.meta.url);
const operators = readdirSync(kernels).filter((stem) =>
  readdirSync(new URL(`${stem}/`, kernels)).includes(`${stem}_cuda.cu`),
);
interface Report {
  machine: { compiler: string; sources: Record<string, string> };
  rows: { name: string; value: number }[];
}
const committed = new URL('../reports/static.json', import.meta.url);
const report = JSON.parse(readFileSync(committed, 'utf8')) as Report;
const full = process.env['TREEWARD_TEST_FULL'] === '1';

const hasNvcc = spawnSync('nvcc', ['--version']).status === 0;
if (!hasNvcc) process.stdout.write('static report: skipped, no nvcc on the PATH (CUDA toolkit 13)\n');

describe.skipIf(!hasNvcc)('with nvcc (skipped without)', () => {
  // Compiles what changed since the committed report was made: usually nothing; with TREEWARD_TEST_FULL everything.
  test(
    'no kernel spills more or runs at lower occupancy than the committed report says',
    { timeout: full ? 1_800_000 : 900_000 },
    () => {
      const args = [script, '--check', ...(full ? ['--all'] : [])];
      const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
      expect(stdout).toMatch(/no new spills, no lower occupancy\n$/);
      expect(status).toBe(0);
    },
  );

  test(
    'what is compiled anew is compared, and has the numbers of the committed report',
    { timeout: 300_000 },
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'treeward-static-test-'));
      try {
        // Against a report that promises more of the smallest operator.
        const better = report.rows.map((row) =>
          row.name.endsWith('/occupancy') ? { ...row, value: 2 } : row,
        );
        const against = join(folder, 'better.json');
        writeFileSync(against, JSON.stringify({ ...report, rows: better }));
        const out = join(folder, 'now.json');
        const only = ['--all', '--arch', '90', '--only', 'value_loss'];
        const args = [script, ...only, '--check', '--against', against, '--out', out];
        const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
        expect(stdout).toMatch(/sm_90\/value_loss\/\S+\/occupancy 2 -> /);
        expect(status).toBe(1);
        const { rows } = JSON.parse(readFileSync(out, 'utf8')) as Report;
        const compared = rows.filter(({ name }) => /\/(spills|occupancy)$/.test(name));
        expect(compared.length).toBeGreaterThan(0);
        for (const { name, value } of compared)
          expect(report.rows.find((row) => row.name === name)?.value, name).toBe(value);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});

test('the committed report covers every operator on every architecture', () => {
  const stems = new Set(report.rows.map(({ name }) => name.split('/').slice(0, 2).join('/')));
  for (const arch of ['sm_80', 'sm_90', 'sm_100'])
    for (const stem of operators) expect(stems).toContain(`${arch}/${stem}`);
  for (const what of ['registers', 'shared', 'spills', 'occupancy'])
    expect(report.rows.some(({ name }) => name.endsWith(`/${what}`))).toBe(true);
});
