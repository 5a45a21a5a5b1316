import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { BootError } from '../lib/errors.mjs';
import { withLock } from '../lib/lock.mjs';
import { isInstalled, npmCommand, npmEnvironment } from '../lib/npm.mjs';
import { run } from '../lib/run.mjs';
import { hashFiles, readStamp, writeStamp } from '../lib/stamp.mjs';
import { buildFolder } from '../lib/workfolder.mjs';

/** Where a harness (or the node it needs) is installed. */
export const harnessFolder = ({ cache, pins }, name) =>
  join(cache, 'harnesses', pins.harnesses[name].directory);

/**
 * One step per pinned harness: `npm ci` of the lock file in `tools/harnesses/<name>`, in its own folder of the
 * cache, never as a dependency of the workspace. A folder installed by hand is adopted when it is whole.
 */
export function harness(context, name) {
  const { root, cache, env, log, pins, say } = context;
  const { package: packageName, version, binary, megabytes } = pins.harnesses[name];
  const target = harnessFolder(context, name);
  const recipe = join(root, 'tools/harnesses', name);
  const files = ['package.json', 'package-lock.json'];
  const stampFile = join(target, 'treeward.json');
  const key = hashFiles(recipe, files, [process.platform, process.arch]);
  const whole = () => existsSync(join(target, binary));
  const fresh = () => readStamp(stampFile)?.key === key && whole();
  return {
    id: `harness-${name}`,
    title: `${name} ${version}`,
    needs: ['npm-packages'],
    async run() {
      if (fresh()) return { status: 'ready' };
      return withLock(
        join(cache, `locks/harness-${name}.lock`),
        async () => {
          if (fresh()) return { status: 'ready' };
          if (whole() && isInstalled(target, join(recipe, 'package-lock.json'))) {
            writeStamp(stampFile, { key, package: packageName, version });
            return { status: 'adopted', detail: target };
          }
          say(`npm ci in ${target} (${megabytes} MB on disk)`);
          await buildFolder(target, async (work) => {
            for (const file of files) copyFileSync(join(recipe, file), join(work, file));
            const [command, ...args] = npmCommand(env);
            await run(command, [...args, 'ci', '--ignore-scripts', '--include=optional'], {
              cwd: work,
              // The harness runs on its own node or is a binary: npm's idea of engines is about ours.
              env: npmEnvironment(env, { npm_config_engine_strict: 'false' }),
              log,
              fetches: true,
              what: `the harness ${packageName} ${version}`,
              code: 'BOOT_E_HARNESS',
            });
            if (!existsSync(join(work, binary))) {
              throw new BootError('BOOT_E_HARNESS', `${packageName} ${version} came without ${binary}`, {
                hints: [
                  'on linux x64 it is part of an optional package: check that npm is not set to omit those',
                ],
                log,
              });
            }
            writeStamp(join(work, 'treeward.json'), { key, package: packageName, version });
          });
          return { status: 'done', detail: target };
        },
        { log: say },
      );
    },
  };
}
