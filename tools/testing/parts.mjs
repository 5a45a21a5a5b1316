import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nxEntry, nxEnvironment } from '../lib/nx.mjs';
import { root } from '../lib/paths.mjs';
import { runInteractive } from '../lib/run.mjs';
import { listFiles } from '../lib/stamp.mjs';
import { packageFolders } from '../steps/build.mjs';
import { addCounts, noCounts, reportCounts, tapCounts } from './counts.mjs';
import { smokeProblems } from './smoke.mjs';

const skip = (name) => ['node_modules', 'dist', 'out-tsc', 'build'].includes(name);
const results = (name) => join(root, 'test-results', `${name}.json`);
const bin = (path) => join(root, 'node_modules', path);
const projectName = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')).nx.name;

/** A node program with our streams; resolves with its exit code. stdin is closed: nothing may ask. */
const node = (args, { minutes, env = process.env }) =>
  runInteractive(process.execPath, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    timeoutMs: minutes * 60_000,
  });

const nx = (args, options) => node([nxEntry(root), ...args], { ...options, env: nxEnvironment(options.env) });

/** Runs commands one after the other, all of them, and counts the part once: passed if every one was. */
async function together(commands) {
  const failed = [];
  for (const [name, start] of commands) {
    process.stdout.write(`\n--- ${name}\n`);
    if ((await start()) !== 0) failed.push(name);
  }
  const counts =
    failed.length === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 };
  return { counts, note: failed.length === 0 ? undefined : `failed: ${failed.join(', ')}` };
}

/** Sums the reports of the projects that ran; a project without one counts as failed. */
function collect(names, code) {
  let counts = noCounts();
  const problems = [];
  const failures = [];
  for (const name of names) {
    const { counts: one, problem, failures: told = [] } = reportCounts(results(name));
    counts = addCounts(counts, one);
    failures.push(...told);
    if (problem !== undefined) problems.push(problem);
    else if (one.failed > 0) problems.push(`${name}: ${one.failed} failed`);
  }
  if (code !== 0 && counts.failed === 0) {
    counts = addCounts(counts, { passed: 0, failed: 1, skipped: 0 });
    problems.push(`nx ended with exit code ${code}`);
  }
  return { counts, note: problems.length === 0 ? undefined : problems.join('; '), failures };
}

/** A package may add to the root configuration: eslint 9 looks for the nearest one only when told to. */
const NEAREST_CONFIG = ['--flag', 'v10_config_lookup_from_file'];

async function lint() {
  return together([
    // First: it also makes the project graph, without which eslint skips the module boundaries.
    ['nx sync:check', () => nx(['sync:check'], { minutes: 3 })],
    [
      'eslint',
      () =>
        node([bin('eslint/bin/eslint.js'), '.', '--max-warnings', '0', ...NEAREST_CONFIG], { minutes: 8 }),
    ],
    [
      'prettier',
      () => node([bin('prettier/bin/prettier.cjs'), '--check', '--log-level', 'warn', '.'], { minutes: 5 }),
    ],
    ['knip', () => node([bin('knip/bin/knip.js'), '--no-config-hints'], { minutes: 5 })],
  ]);
}

const typecheck = () => together([['tsc -b', () => node([bin('typescript/bin/tsc'), '-b'], { minutes: 8 })]]);

const build = (options) =>
  together([
    [
      'nx build',
      () =>
        nx(['run-many', '-t', 'build,build-native,build-init', '--parallel=2', ...options.nxFlags], {
          minutes: 8,
        }),
    ],
  ]);

async function tools() {
  const files = listFiles(root, 'tools', skip).filter((file) => file.endsWith('.test.mjs'));
  const tap = join(root, 'test-results/tools.tap');
  const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout'];
  reporters.push('--test-reporter=tap', `--test-reporter-destination=${tap}`);
  const code = await node(['--test', ...reporters, ...files], { minutes: 5 });
  const counts = existsSync(tap) ? tapCounts(readFileSync(tap, 'utf8')) : undefined;
  if (counts === undefined)
    return { counts: { passed: 0, failed: 1, skipped: 0 }, note: 'the test runner crashed' };
  if (code !== 0 && counts.failed === 0)
    return { counts: { ...counts, failed: 1 }, note: `exit code ${code}` };
  return { counts };
}

async function unit(options) {
  const projects = packageFolders(root).map(projectName);
  const code = await nx(['run-many', '-t', 'test', '--outputStyle=static', ...options.nxFlags], {
    minutes: 20,
    env: options.env,
  });
  return collect(projects, code);
}

async function integration(options) {
  const folders = packageFolders(root).filter((folder) =>
    listFiles(root, `${folder}/src`, skip).some((file) => file.endsWith('.integration.test.ts')),
  );
  if (folders.length === 0)
    return { counts: { passed: 0, failed: 1, skipped: 0 }, note: 'no *.integration.test.ts found' };
  const code = await nx(['run-many', '-t', 'integration', '--outputStyle=static'], {
    minutes: 25,
    env: options.env,
  });
  return collect(
    folders.map((folder) => `integration-${projectName(folder)}`),
    code,
  );
}

async function smoke() {
  const folder = mkdtempSync(join(tmpdir(), 'treeward-smoke-'));
  const run = join(folder, 'run');
  const code = await nx(['run', 'train:mixed:smoke', '--outputStyle=static', '--', '--run-dir', run], {
    minutes: 10,
  });
  const problems = code === 0 ? smokeProblems(run) : [`exit code ${code}`];
  if (problems.length > 0)
    return { counts: { passed: 0, failed: 1, skipped: 0 }, note: `${problems.join('; ')} (kept: ${run})` };
  rmSync(folder, { recursive: true, force: true });
  return { counts: { passed: 1, failed: 0, skipped: 0 } };
}

const builds = ['native', 'typescript'];
const tensorflow = ['system-packages', 'libtensorflow', 'tfjs-binding', 'tensorflow-operators'];

/**
 * The parts of `npm test` in order. `steps`: what setup must have done before; `harnesses`: whether the real
 * CLIs are needed, so that the part is skipped, with the reason, where they cannot be installed.
 */
export const PARTS = [
  { part: 'lint', steps: [], run: lint },
  { part: 'typecheck', steps: [], run: typecheck },
  { part: 'build', steps: ['system-packages', ...builds], run: build },
  { part: 'tools', steps: [], run: tools },
  { part: 'unit', steps: [...tensorflow, ...builds], run: unit },
  {
    part: 'integration',
    steps: [...tensorflow, 'docker', 'browser', ...builds],
    harnesses: true,
    run: integration,
  },
  { part: 'smoke', steps: [...tensorflow, ...builds], harnesses: true, run: smoke },
];
