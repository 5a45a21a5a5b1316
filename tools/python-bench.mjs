// The optional Python environment that benches compare with: PyTorch, torchrl, transformers. Nothing but benches uses it.
//
//   node tools/python-bench.mjs           makes it (or finds it made) in the cache folder and prints its python
//   node tools/python-bench.mjs --path    only prints its python; exit code 3 when it is not made
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BootError, describeError } from './lib/errors.mjs';
import { withLock } from './lib/lock.mjs';
import { cacheRoot, onPath, root, writableFolder } from './lib/paths.mjs';
import { exitCodeOf, forwardSignals, interrupted, run } from './lib/run.mjs';
import { dropStamp, hashFiles, readStamp, writeStamp } from './lib/stamp.mjs';

/** Exact versions; what they need besides is pip's choice. */
export const PACKAGES = {
  torch: '2.13.0',
  numpy: '2.4.6',
  torchrl: '0.14.1',
  transformers: '5.24.0',
  safetensors: '0.8.0',
  peft: '0.21.2',
};

const hash = () => hashFiles(root, [], [JSON.stringify(PACKAGES)]);

export const pythonBenchFolder = (cache) => join(cache, 'python-bench');

const pythonOf = (folder) => join(folder, 'bin/python');

const stampOf = (folder) => join(folder, 'treeward.json');

const isReady = (folder) => readStamp(stampOf(folder))?.hash === hash() && existsSync(pythonOf(folder));

/** Versions of PACKAGES that the environment's python finds, without importing them; undefined when it does not start. */
function installedVersions(folder, env) {
  const program =
    'import importlib.metadata as m, json, sys\n' +
    'print(json.dumps({d.metadata["Name"].lower(): d.version for d in m.distributions() if d.metadata["Name"].lower() in sys.argv[1:]}))';
  const { status, stdout } = spawnSync(pythonOf(folder), ['-c', program, ...Object.keys(PACKAGES)], {
    env,
    encoding: 'utf8',
  });
  return status === 0 ? JSON.parse(stdout) : undefined;
}

/** `2.13.0+cpu` is 2.13.0 built without CUDA. */
const isWhole = (versions) =>
  Object.entries(PACKAGES).every(([name, version]) => versions?.[name]?.split('+')[0] === version);

async function install(folder, { env, log, say }) {
  if (onPath('python3', env) === undefined) {
    throw new BootError('BOOT_E_NO_PYTHON', 'python3 is not on the PATH', {
      hints: [
        'Debian, Ubuntu: sudo apt-get install -y python3 python3-venv',
        'only the rows of benches that compare with PyTorch need it: everything else runs without',
      ],
    });
  }
  rmSync(folder, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', folder], {
    env,
    log,
    what: 'a virtual environment',
    code: 'BOOT_E_NO_PYTHON',
    hints: ['Debian, Ubuntu: sudo apt-get install -y python3-venv'],
  });
  const pip = (wanted, what) =>
    run(pythonOf(folder), ['-m', 'pip', 'install', '--no-input', ...wanted], {
      env: { ...env, PIP_DISABLE_PIP_VERSION_CHECK: '1' },
      log,
      fetches: true,
      what,
      code: 'BOOT_E_PIP',
      hints: [`see which versions pip can reach: ${pythonOf(folder)} -m pip index versions torch`],
    });
  const { torch, ...others } = PACKAGES;
  say(`installing torch ${torch}`);
  try {
    await pip([`torch==${torch}+cpu`], `torch ${torch} for the CPU (200 MB)`);
  } catch (error) {
    if (error.code !== 'BOOT_E_PIP') throw error;
    say(`the package index has no torch ${torch}+cpu: taking the build with CUDA (several GB)`);
    await pip([`torch==${torch}`], `torch ${torch}`);
  }
  const rest = Object.entries(others).map(([name, version]) => `${name}==${version}`);
  say(`installing ${rest.join(' ')}`);
  await pip(rest, rest.join(', '));
}

/**
 * Makes the environment unless the one in the cache folder has these versions already. Resolves with its python and
 * `ready` (nothing to do), `adopted` (made by hand, right versions) or `done`.
 *
 * @throws BootError BOOT_E_NO_PYTHON, BOOT_E_PIP, BOOT_E_NETWORK, BOOT_E_NOT_WRITABLE, BOOT_E_LOCKED
 */
export async function pythonBench({ cache, env, log, say }) {
  const folder = pythonBenchFolder(cache);
  const python = pythonOf(folder);
  if (isReady(folder)) return { status: 'ready', python };
  writableFolder(cache);
  return withLock(
    join(cache, 'locks/python-bench.lock'),
    async () => {
      if (isReady(folder)) return { status: 'ready', python };
      let status = 'adopted';
      let versions = installedVersions(folder, env);
      if (!isWhole(versions)) {
        dropStamp(stampOf(folder));
        await install(folder, { env, log, say });
        status = 'done';
        versions = installedVersions(folder, env);
        if (!isWhole(versions)) {
          throw new BootError('BOOT_E_PIP', `pip ended well but left ${JSON.stringify(versions)}`, { log });
        }
      }
      writeStamp(stampOf(folder), { hash: hash(), versions });
      return { status, python };
    },
    { log: say },
  );
}

async function main(args) {
  const env = process.env;
  const cache = cacheRoot(env);
  if (args.length === 1 && args[0] === '--path') {
    if (!isReady(pythonBenchFolder(cache))) return 3;
    process.stdout.write(`${pythonOf(pythonBenchFolder(cache))}\n`);
    return 0;
  }
  if (args.length > 0) {
    process.stderr.write('usage: node tools/python-bench.mjs [--path]\n');
    return 2;
  }
  forwardSignals();
  const log = join(root, '.treeward-setup/python-bench.log');
  const say = (text) => process.stderr.write(`[python-bench] ${text}\n`);
  try {
    const { status, python } = await pythonBench({ cache, env, log, say });
    say(`${status}: ${JSON.stringify(readStamp(stampOf(pythonBenchFolder(cache))).versions)}`);
    process.stdout.write(`${python}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(`${describeError(error)}\n`);
    return interrupted() ? exitCodeOf(null, interrupted()) : 1;
  }
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = await main(process.argv.slice(2));
