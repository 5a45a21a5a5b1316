import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BootError } from './lib/errors.mjs';
import { root } from './lib/paths.mjs';
import { interrupted } from './lib/run.mjs';
import { HARNESS_STEPS, setup } from './setup.mjs';
import { addCounts, noCounts } from './testing/counts.mjs';
import { partTable } from './testing/table.mjs';

/** `--full`, `--only a,b` → options. Throws `BOOT_E_USAGE` for anything else. */
export function parseTestArguments(args, known) {
  const options = { full: false, only: known };
  const usage = (message) => {
    throw new BootError('BOOT_E_USAGE', message, { hints: [`parts: ${known.join(', ')}`] });
  };
  for (let i = 0; i < args.length; i++) {
    if (args[i] === '--full') options.full = true;
    else if (args[i] === '--only' && args[i + 1] !== undefined) options.only = args[++i].split(',');
    else usage(`unknown argument of test: ${args[i]}`);
  }
  const unknown = options.only.filter((part) => !known.includes(part));
  if (unknown.length > 0) usage(`no such part: ${unknown.join(', ')}`);
  return options;
}

/**
 * Sets up what the parts need, runs them all, prints a table of minutes and what failed, and ends with the line
 * `N passed, N failed, N skipped`. Resolves with the exit code.
 */
export async function runTests(args) {
  const { PARTS } = await import('./testing/parts.mjs');
  const { only, full } = parseTestArguments(
    args,
    PARTS.map(({ part }) => part),
  );
  const parts = PARTS.filter(({ part }) => only.includes(part));
  const wanted = new Set(['npm-packages', ...parts.flatMap(({ steps }) => steps)]);
  if (parts.some(({ harnesses }) => harnesses)) for (const id of HARNESS_STEPS) wanted.add(id);

  const results = [];
  const report = await setup({ only: [...wanted], optional: HARNESS_STEPS });
  results.push({ part: 'install', seconds: report.totalSeconds, counts: noCounts() });
  const missing = report.steps.filter(({ id, status }) => HARNESS_STEPS.includes(id) && status === 'failed');

  // Old reports must not be taken for new ones; those of cached tasks come back from Nx's cache.
  rmSync(join(root, 'test-results'), { recursive: true, force: true });
  mkdirSync(join(root, 'test-results'));
  const options = {
    env: full ? { ...process.env, TREEWARD_TEST_FULL: '1' } : process.env,
    nxFlags: full ? ['--skip-nx-cache'] : [],
  };
  for (const { part, harnesses, run } of parts) {
    process.stdout.write(`\n===== ${part}\n`);
    if (harnesses && missing.length > 0) {
      const note = `not installed: ${missing.map(({ title, error }) => `${title} (${error.code})`).join(', ')}`;
      results.push({ part, seconds: 0, counts: { passed: 0, failed: 0, skipped: 1 }, note });
      continue;
    }
    const began = performance.now();
    const { counts, note, failures } = await run(options);
    results.push({ part, seconds: (performance.now() - began) / 1000, counts, note, failures });
    if (interrupted()) break;
  }
  const total = results.reduce((sum, { counts }) => addCounts(sum, counts), noCounts());
  process.stdout.write(`\n${partTable(results)}\n\n`);
  // Again, because they stand thousands of lines further up.
  for (const { failures = [] } of results)
    for (const told of failures) process.stdout.write(`FAILED ${told}\n\n`);
  process.stdout.write(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
  if (interrupted()) return 130;
  return total.failed > 0 || total.passed === 0 ? 1 : 0;
}
