// The GPU build of the learner's engine: tfjs-node-gpu over the CUDA libtensorflow, with CUDA's libraries. The learner takes it
// where it finds it and a device; without a device it computes on the CPU.
//
//   node tools/tfjs-gpu.mjs [--cuda always|never]
//
// CUDA's libraries (1.8 GB) are fetched where an NVIDIA driver is; `--cuda` says otherwise. Without them, and without a device,
// what is built loads all the same.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeError } from './lib/errors.mjs';
import { isInstalled, npmCommand, npmEnvironment } from './lib/npm.mjs';
import { cacheRoot, root, writableFolder } from './lib/paths.mjs';
import { forwardSignals, interrupted, run } from './lib/run.mjs';
import { buildFolder } from './lib/workfolder.mjs';
import { pins } from './setup.mjs';
import { hasNvidiaDriver, provideCudaLibraries } from './steps/cuda-libraries.mjs';
import { libtensorflow, libtensorflowFolder } from './steps/libtensorflow.mjs';
import { provideBinding } from './steps/tfjs-binding.mjs';

const PACKAGE = '@tensorflow/tfjs-node-gpu';

/** Where the package lies, with its own node_modules; the learner looks here too (packages/learner/src/tf/load.ts). */
export const tfjsGpuFolder = (cache) => join(cache, 'tfjs-gpu');

// What the built package does on this machine: which devices TensorFlow has, and one product.
const REPORT = `
  const util = require('node:util');
  util.isNullOrUndefined ??= (value) => value === null || value === undefined;
  const tf = require('${PACKAGE}');
  const gpu = tf.backend().isUsingGpuDevice;
  const product = tf.matMul([[1, 2], [3, 4]], [[1, 2], [3, 4]]).dataSync().join();
  console.log(JSON.stringify({ gpu, product, tensorflow: tf.backend().binding.TF_Version }));
`;

async function main() {
  const { values } = parseArgs({ options: { cuda: { type: 'string' } } });
  forwardSignals();
  const cache = writableFolder(cacheRoot());
  const say = (text) => process.stderr.write(`[tfjs-gpu] ${text}\n`);
  const context = {
    root,
    cache,
    env: process.env,
    log: join(root, '.treeward-setup/tfjs-gpu.log'),
    pins: { ...pins, tensorflow: pins.tensorflowGpu },
    say,
  };
  const outcome = async (title, work) => {
    const { status, detail } = await work;
    say(`${title}: ${status}${detail ? ` (${detail})` : ''}`);
  };
  await outcome('libtensorflow with CUDA', libtensorflow(context).run());
  const folder = tfjsGpuFolder(cache);
  await outcome(PACKAGE, installPackage(context, folder));
  await outcome('binding', provideBinding(context, PACKAGE, join(folder, 'node_modules')));
  const driver = hasNvidiaDriver();
  if (values.cuda === 'always' || (driver && values.cuda !== 'never')) {
    await outcome('CUDA libraries', provideCudaLibraries(context));
  } else say(`CUDA libraries: left out (${driver ? '--cuda never' : 'no NVIDIA driver on this machine'})`);
  const printed = await run(process.execPath, ['-e', REPORT], {
    cwd: folder,
    env: { ...process.env, TF_CPP_MIN_LOG_LEVEL: '3' },
    log: context.log,
    what: `loading ${PACKAGE}`,
    code: 'BOOT_E_TFJS',
  });
  const { gpu, product, tensorflow } = JSON.parse(printed.trim().split('\n').at(-1));
  say(
    gpu
      ? `TensorFlow ${tensorflow} computes on the GPU (a product gave ${product})`
      : `TensorFlow ${tensorflow} found no GPU: it loads and computes on the CPU (a product gave ${product}); ${libtensorflowFolder(context)}`,
  );
}

async function installPackage({ env, log }, folder) {
  const recipe = join(root, 'tools/tfjs-gpu');
  if (isInstalled(folder, join(recipe, 'package-lock.json'))) return { status: 'ready' };
  await buildFolder(folder, async (work) => {
    for (const file of ['package.json', 'package-lock.json'])
      copyFileSync(join(recipe, file), join(work, file));
    const [command, ...args] = npmCommand(env);
    await run(command, [...args, 'ci', '--ignore-scripts'], {
      cwd: work,
      env: npmEnvironment(env, {}),
      log,
      fetches: true,
      what: PACKAGE,
      code: 'BOOT_E_NPM',
    });
  });
  return { status: 'done', detail: folder };
}

main().catch((error) => {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = interrupted() ? 130 : 1;
});
