import { execFile } from 'node:child_process';
import { accessSync, chmodSync, chownSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { scratch } from './testing/conformance.js';

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
      for (const name of ['.', 'tmp', 'cache']) {
        mkdirSync(join(home, name), { recursive: true });
        chownSync(join(home, name), UID, UID);
        chmodSync(join(home, name), 0o755);
      }
      const vitest = fileURLToPath(import.meta.resolve('vitest/package.json')).replace(
        'package.json',
        'vitest.mjs',
      );
      const { stdout } = await promisify(execFile)(
        'setpriv',
        [
          ...['--reuid', String(UID), '--regid', String(UID), '--clear-groups'],
          ...[process.execPath, vitest, 'run', '--reporter=json', 'src/bubblewrap.'],
        ],
        {
          cwd: packageRoot,
          maxBuffer: 64 * 1024 * 1024,
          env: {
            PATH: process.env['PATH'],
            HOME: home,
            TMPDIR: join(home, 'tmp'),
            TREEWARD_VITEST_CACHE: join(home, 'cache'),
          },
        },
      ).catch((error: { stdout: string; stderr: string }) => {
        throw new Error(failures(error.stdout) || error.stderr || error.stdout);
      });
      const report = JSON.parse(stdout.slice(stdout.indexOf('{"'))) as {
        numPassedTests: number;
        numFailedTests: number;
      };
      expect(report.numFailedTests).toBe(0);
      expect(report.numPassedTests).toBeGreaterThan(40);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },
);

function failures(json: string): string {
  try {
    const report = JSON.parse(json.slice(json.indexOf('{"'))) as {
      testResults: {
        message: string;
        assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
      }[];
    };
    return report.testResults
      .flatMap(({ message, assertionResults }) => [
        message,
        ...assertionResults
          .filter((result) => result.status === 'failed')
          .map((result) => `${result.fullName}\n${result.failureMessages.join('\n')}`),
      ])
      .filter(Boolean)
      .join('\n\n');
  } catch {
    return json.slice(-4000);
  }
}
