import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { scratch } from './testing/open.js';

/** An unprivileged uid that is neither the sandboxes' nor anybody's. */
const UID = 20002;
const packageRoot = fileURLToPath(new URL('..', import.meta.url));

const unreachable = (): string | null => {
  if (process.getuid?.() !== 0) return 'not root: the other test files run in tier user here anyway';
  if (!existsSync('/usr/bin/setpriv')) return 'no setpriv';
  for (let path = packageRoot; path !== '/'; path = dirname(path)) {
    if (!(statSync(path).mode & 0o001)) return `the checkout is out of reach for other users (${path})`;
  }
  try {
    accessSync('/proc/self/ns/user');
  } catch {
    return 'no user namespaces';
  }
  return null;
};
const reason = unreachable();
if (reason) console.warn(`skipped: tier user: ${reason}`);

it.skipIf(reason !== null)(
  'passes the same tests as an unprivileged user (tier user)',
  { timeout: 300_000 },
  async () => {
    const home = scratch();
    try {
      for (const name of ['.', 'tmp']) {
        mkdirSync(join(home, name), { recursive: true });
        chownSync(join(home, name), UID, UID);
        chmodSync(join(home, name), 0o755);
      }
      const vitest = fileURLToPath(import.meta.resolve('vitest/package.json')).replace(
        'package.json',
        'vitest.mjs',
      );
      const output = join(home, 'report.json');
      const ran = await promisify(execFile)(
        'setpriv',
        [
          ...['--reuid', String(UID), '--regid', String(UID), '--clear-groups'],
          ...[process.execPath, vitest, 'run', '--configLoader=runner', 'src/bubblewrap.'],
        ],
        {
          cwd: packageRoot,
          maxBuffer: 64 * 1024 * 1024,
          env: {
            PATH: process.env['PATH'],
            HOME: home,
            TMPDIR: join(home, 'tmp'),
            TREEWARD_VITEST_SCRATCH: home,
            TREEWARD_EXPECT_TIER: 'user',
          },
        },
      ).catch((error: { stdout: string; stderr: string }) => error);
      if (!existsSync(output)) throw new Error(`vitest wrote no report: ${ran.stderr}${ran.stdout}`);
      const report = JSON.parse(readFileSync(output, 'utf8')) as Report;
      expect(failures(report)).toEqual([]);
      expect(report.numFailedTests).toBe(0);
      expect(report.numPassedTests).toBeGreaterThan(40);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },
);

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  testResults: {
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

const failures = (report: Report): string[] =>
  report.testResults.flatMap(({ status, message, assertionResults }) => [
    ...(status === 'failed' && message ? [message] : []),
    ...assertionResults
      .filter((result) => result.status === 'failed')
      .map((result) => `${result.fullName}: ${result.failureMessages.join(' ')}`),
  ]);
