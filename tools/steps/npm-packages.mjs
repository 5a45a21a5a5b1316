import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BootError } from '../lib/errors.mjs';
import { withLock } from '../lib/lock.mjs';
import { isInstalled, npmCommand, npmEnvironment } from '../lib/npm.mjs';
import { run } from '../lib/run.mjs';
import { dropStamp, hashFiles, readStamp, writeStamp } from '../lib/stamp.mjs';

/** `npm ci` when package.json, the lock file or .npmrc changed since the last one. The stamp goes with node_modules. */
export function npmPackages({ root, env, log, say }) {
  const stampFile = join(root, 'node_modules/.treeward-install.json');
  const lockFile = join(root, 'package-lock.json');
  const fingerprint = () =>
    hashFiles(root, ['package-lock.json', '.npmrc', 'package.json'], [process.platform, process.arch]);
  const fresh = () => readStamp(stampFile)?.key === fingerprint();
  return {
    id: 'npm-packages',
    title: 'npm packages',
    async run() {
      if (!existsSync(lockFile)) {
        throw new BootError('BOOT_E_NO_LOCK_FILE', `${lockFile} is missing`, {
          hints: ['take a whole checkout'],
        });
      }
      if (fresh()) return { status: 'ready' };
      return withLock(
        join(root, '.bootstrap-lock'),
        async () => {
          if (fresh()) return { status: 'ready' };
          if (isInstalled(root, lockFile)) {
            writeStamp(stampFile, { key: fingerprint() });
            return { status: 'adopted', detail: 'already installed as the lock file says' };
          }
          dropStamp(stampFile);
          say('npm ci');
          const [command, ...args] = npmCommand(env);
          await run(command, [...args, 'ci', '--include=dev', '--include=optional'], {
            cwd: root,
            env: npmEnvironment(env),
            log,
            fetches: true,
            what: 'the npm packages of package-lock.json',
            code: 'BOOT_E_NPM',
            hints: ['if package.json changed, run `npm install` once so that the lock file follows'],
          });
          writeStamp(stampFile, { key: fingerprint() });
          return { status: 'done', detail: 'npm ci' };
        },
        { log: say },
      );
    },
  };
}
