import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BootError } from '../lib/errors.mjs';
import { withLock } from '../lib/lock.mjs';
import { run } from '../lib/run.mjs';
import { dropStamp, hashFiles, readStamp, writeStamp } from '../lib/stamp.mjs';
import { libtensorflowFolder } from './libtensorflow.mjs';

const SOURCES = ['binding/tfjs_backend.cc', 'binding/tfjs_binding.cc'];

// Node 23 removed util.isNullOrUndefined, which tfjs-node 4.22 still calls.
const selfTest = (name) => `
  const util = require('node:util');
  util.isNullOrUndefined ??= (value) => value === null || value === undefined;
  const tf = require('${name}');
  const product = tf.matMul([[1, 2], [3, 4]], [[1, 2], [3, 4]]).dataSync().join();
  if (product !== '7,10,15,22') throw new Error('matMul gives ' + product);
  console.log(JSON.stringify({ tfjs: tf.version['tfjs-core'], tensorflow: tf.backend().binding.TF_Version }));
`;

/**
 * Compiles tfjs-node's own two sources against the unpacked libtensorflow (kept in the cache by content) and puts
 * binding and links into node_modules, then multiplies two matrices with it. `npm ci` takes the binding away:
 * putting it back is a copy.
 */
export function tfjsBinding(context) {
  return {
    id: 'tfjs-binding',
    title: 'tfjs-node binding',
    needs: ['npm-packages', 'libtensorflow'],
    run: () => provideBinding(context, '@tensorflow/tfjs-node', join(context.root, 'node_modules')),
  };
}

/**
 * The same for any of the tfjs-node packages, where it is installed.
 *
 * @returns the step's outcome
 */
export async function provideBinding(context, name, modules) {
  const { root, cache, env, log, pins, say } = context;
  const home = join(modules, name);
  const binary = join(home, 'lib/napi-v8/tfjs_binding.node');
  const stampFile = join(home, '.treeward-binding.json');
  const tensorflow = libtensorflowFolder(context);
  if (!existsSync(join(home, 'package.json'))) {
    throw new BootError('BOOT_E_TFJS', `${name} is not installed`, { hints: ['run npm ci'] });
  }
  const version = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')).version;
  const compiled = hashFiles(home, SOURCES, [version, pins.tensorflow.sha256]).slice(0, 16);
  const key = `${compiled} ${tensorflow}`;
  const linked = join(home, 'deps/lib/libtensorflow_cc.so.2');
  const last = readStamp(stampFile);
  if (last?.key === key && existsSync(binary) && existsSync(linked)) {
    return { status: 'ready', detail: `tfjs ${last.tfjs} on libtensorflow ${last.tensorflow}` };
  }
  const kept = join(tensorflow, `tfjs_binding-${version}-${compiled}.node`);
  const build = async () => {
    if (existsSync(kept)) return;
    say('compiling');
    await compile({ root, home, tensorflow, kept, env, log });
  };
  await withLock(join(cache, `locks/tfjs-binding-${compiled}.lock`), build, { log: say });

  dropStamp(stampFile);
  rmSync(join(home, 'deps'), { recursive: true, force: true });
  mkdirSync(join(home, 'deps'));
  for (const part of ['include', 'lib']) symlinkSync(join(tensorflow, part), join(home, 'deps', part));
  mkdirSync(join(home, 'lib/napi-v8'), { recursive: true });
  // Renamed into place: a process that has the old file loaded keeps it whole.
  copyFileSync(kept, `${binary}.${process.pid}`);
  renameSync(`${binary}.${process.pid}`, binary);
  const printed = await run(process.execPath, ['-e', selfTest(name)], {
    cwd: dirname(modules),
    env: { ...env, TF_CPP_MIN_LOG_LEVEL: '3' },
    log,
    what: `the self-test of ${name} on libtensorflow`,
    code: 'BOOT_E_TFJS',
    hints: [`delete ${tensorflow} and run the same command again`],
  });
  const found = JSON.parse(printed.trim().split('\n').at(-1));
  writeStamp(stampFile, { key, ...found });
  return { status: 'done', detail: `tfjs ${found.tfjs} on libtensorflow ${found.tensorflow}` };
}

async function compile({ root, home, tensorflow, kept, env, log }) {
  const unfinished = `${kept}.${process.pid}`;
  const include = [home, join(tensorflow, 'include'), join(root, 'node_modules/node-api-headers/include')];
  const flags = [
    '-O2',
    '-std=c++17',
    '-shared',
    '-fPIC',
    '-w',
    '-DNAPI_VERSION=8',
    '-DBUILDING_NODE_EXTENSION',
  ];
  const libraries = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'].map((name) =>
    join(tensorflow, 'lib', name),
  );
  try {
    await run(
      'g++',
      [
        ...flags,
        ...include.map((folder) => `-I${folder}`),
        ...SOURCES.map((source) => join(home, source)),
        '-o',
        unfinished,
        ...libraries,
        '-Wl,-rpath,$ORIGIN/../../deps/lib',
      ],
      {
        env,
        log,
        what: 'compiling the binding of tfjs-node',
        code: 'BOOT_E_TFJS',
        hints: ['g++ with C++17 is needed'],
      },
    );
    renameSync(unfinished, kept);
  } finally {
    rmSync(unfinished, { force: true });
  }
}
