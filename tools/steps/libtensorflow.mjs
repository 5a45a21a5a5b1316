import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { BootError } from '../lib/errors.mjs';
import { withLock } from '../lib/lock.mjs';
import { pipCommand } from '../lib/pip.mjs';
import { run } from '../lib/run.mjs';
import { readStamp, writeStamp } from '../lib/stamp.mjs';
import { extractEntry, listZip } from '../lib/unzip.mjs';
import { buildFolder } from '../lib/workfolder.mjs';

const LIBRARIES = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'];
const HEADERS = /^tensorflow\/include\/(tensorflow\/c\/|(?:.*\/)?tsl\/c\/|(?:.*\/)?platform\/ctstring).*\.h$/;

/** Where the two libraries (`lib/`) and the C headers (`include/`) lie once unpacked: a folder per wheel. */
export const libtensorflowFolder = ({ cache, pins: { tensorflow } }) =>
  join(
    cache,
    'libtensorflow',
    tensorflow.package === 'tensorflow-cpu'
      ? tensorflow.version
      : `${tensorflow.package}-${tensorflow.version}`,
  );

export function libtensorflowReady(context) {
  const folder = libtensorflowFolder(context);
  return (
    readStamp(join(folder, 'ok.json'))?.sha256 === context.pins.tensorflow.sha256 &&
    LIBRARIES.every((name) => existsSync(join(folder, 'lib', name)))
  );
}

/** Where an entry of the wheel goes, or undefined when it is not needed. */
function placeOf(name) {
  if (LIBRARIES.some((library) => name === `tensorflow/${library}`)) return join('lib', basename(name));
  return HEADERS.test(name) ? join('include', name.slice('tensorflow/include/'.length)) : undefined;
}

/**
 * tfjs-node's own libtensorflow is old and its download host often unreachable: the Python wheel carries the
 * same C API. Fetched with pip (pinned by sha256), two libraries and the headers unpacked, the rest dropped.
 */
export function libtensorflow(context) {
  const { cache, pins, say } = context;
  const { version, wheelMegabytes } = pins.tensorflow;
  return {
    id: 'libtensorflow',
    title: `libtensorflow ${version}`,
    needs: ['system-packages'],
    async run() {
      if (process.platform !== 'linux' || process.arch !== 'x64') {
        throw new BootError('BOOT_E_PLATFORM', `no libtensorflow for ${process.platform} ${process.arch}`, {
          hints: ['Treeward trains on linux x64 (a container or virtual machine will do)'],
        });
      }
      if (libtensorflowReady(context)) return { status: 'ready' };
      return withLock(
        join(cache, `locks/libtensorflow-${basename(libtensorflowFolder(context))}.lock`),
        async () => {
          if (libtensorflowReady(context)) return { status: 'ready' };
          const wheels = join(cache, 'wheels');
          let wheel = cachedWheel(pins.tensorflow, wheels);
          const detail =
            wheel === undefined ? `downloaded ${wheelMegabytes} MB` : 'from the wheel in the cache';
          wheel ??= await downloadWheel(context, pins.tensorflow, wheels, 'which carries libtensorflow');
          say(`unpacking ${basename(wheel)}`);
          await buildFolder(libtensorflowFolder(context), (work) => unpack(wheel, work, pins.tensorflow));
          // What was needed of it is unpacked now.
          rmSync(wheel, { force: true });
          return { status: 'done', detail };
        },
        { log: say },
      );
    },
  };
}

const prefixOf = (pin) => `${pin.package.replaceAll('-', '_')}-${pin.version}-`;

function cachedWheel(pin, wheels) {
  if (!existsSync(wheels)) return undefined;
  const name = readdirSync(wheels).find((entry) => entry.startsWith(prefixOf(pin)) && entry.endsWith('.whl'));
  return name === undefined ? undefined : join(wheels, name);
}

/**
 * Fetches the wheel of a pin `{package, version, sha256, python, abi, wheelMegabytes}` into the folder `wheels`. pip checks the
 * hash and moves the finished file into place: a wheel in the folder is whole.
 *
 * @returns its path
 */
export async function downloadWheel({ env, log, say }, pin, wheels, purpose) {
  const { package: name, version, sha256, python, abi, wheelMegabytes } = pin;
  const scratch = join(wheels, `scratch-${name}`);
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  try {
    const [command, ...pip] = await pipCommand(scratch, { env, log });
    const requirements = join(scratch, 'requirements.txt');
    writeFileSync(requirements, `${name}==${version} --hash=sha256:${sha256}\n`);
    say(`downloading ${name} ${version} (${wheelMegabytes} MB)`);
    // Explicit tags: the wheel need not match this machine's python.
    const platforms = [
      'manylinux1_x86_64',
      'manylinux2014_x86_64',
      'manylinux_2_17_x86_64',
      'manylinux_2_27_x86_64',
    ];
    const tags = ['--implementation', 'cp', '--python-version', python, '--abi', abi];
    tags.push(...platforms.flatMap((platform) => ['--platform', platform]));
    const args = [
      'download',
      '-q',
      '--no-deps',
      '--no-cache-dir',
      '--only-binary=:all:',
      '--require-hashes',
      ...tags,
    ];
    await run(command, [...pip, ...args, '-d', wheels, '-r', requirements], {
      env: { ...env, PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_NO_INPUT: '1' },
      log,
      fetches: true,
      what: `the wheel ${name} ${version}, ${purpose} (${wheelMegabytes} MB)`,
      code: 'BOOT_E_PIP',
      hints: [`see which versions pip can reach: ${command} -m pip index versions ${name}`],
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const wheel = cachedWheel(pin, wheels);
  if (wheel === undefined)
    throw new BootError('BOOT_E_PIP', `pip ended well but left no wheel in ${wheels}`, { log });
  return wheel;
}

async function unpack(wheel, work, { version, sha256 }) {
  try {
    const entries = await listZip(wheel);
    const wanted = entries.flatMap((entry) => {
      const place = placeOf(entry.name);
      return place === undefined ? [] : [{ entry, place }];
    });
    // Inflating runs on libuv's threads: the two big libraries unpack side by side.
    await Promise.all(wanted.map(({ entry, place }) => extractEntry(wheel, entry, join(work, place))));
  } catch (error) {
    if (error.code === 'BOOT_E_ARCHIVE' || String(error.code).startsWith('Z_'))
      rmSync(wheel, { force: true });
    throw error;
  }
  for (const name of LIBRARIES) {
    if (!existsSync(join(work, 'lib', name)))
      throw new BootError('BOOT_E_ARCHIVE', `${basename(wheel)} holds no ${name}`);
  }
  writeStamp(join(work, 'ok.json'), { version, sha256 });
}
