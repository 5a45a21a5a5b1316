import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { nxEntry, nxEnvironment } from '../lib/nx.mjs';
import { run } from '../lib/run.mjs';
import { dropStamp, hashFiles, listFiles, readStamp, writeStamp } from '../lib/stamp.mjs';
import { withLock } from '../lib/lock.mjs';

const OUTPUT_FOLDERS = new Set([
  'node_modules',
  'dist',
  'build',
  'out-tsc',
  '.nx',
  'test-results',
  'runs',
  'coverage',
]);
const skip = (name) => OUTPUT_FOLDERS.has(name);

/** The workspace's packages as folders relative to the root, those with a tsconfig.lib.json. */
export function packageFolders(root) {
  const members = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
  return [...members, 'native', 'datasets', 'benchmarks']
    .filter((folder) => existsSync(join(root, folder, 'tsconfig.lib.json')))
    .sort();
}

const isNativeSource = (file) => /\.(c|cc|cpp|h|hpp|cu|cuh|cmake)$|CMakeLists\.txt$|\.sh$/.test(file);
const isTypeScriptSource = (file) => /\.(ts|mts|json)$/.test(file);

function sources(root, accept) {
  return packageFolders(root)
    .flatMap((folder) => listFiles(root, folder, skip))
    .filter(accept);
}

/** A step whose result depends on source files alone: skipped while their hash and its outputs are as they were. */
function sourceStep({ root, env, log, say }, { id, title, needs, files, outputs, extra = [], work }) {
  const stampFile = join(root, `.nx/treeward/${id}.json`);
  const key = () => hashFiles(root, files(), [process.versions.modules, ...extra]);
  const fresh = (wanted) =>
    readStamp(stampFile)?.key === wanted && outputs().every((file) => existsSync(join(root, file)));
  return {
    id,
    title,
    needs,
    async run() {
      if (fresh(key())) return { status: 'ready' };
      return withLock(
        join(root, `.nx/treeward/${id}.lock`),
        async () => {
          const wanted = key();
          if (fresh(wanted)) return { status: 'ready' };
          dropStamp(stampFile);
          await work({ root, env, log, say });
          writeStamp(stampFile, { key: wanted });
          return { status: 'done' };
        },
        { log: say },
      );
    },
  };
}

/** One `tsc -b` over all packages: half the time of a compiler per package, and Nx later finds it up to date. */
export function typescriptBuild(context) {
  const { root } = context;
  return sourceStep(context, {
    id: 'typescript',
    title: 'TypeScript build',
    needs: ['npm-packages'],
    files: () => ['tsconfig.base.json', ...sources(root, isTypeScriptSource)],
    outputs: () => packageFolders(root).map((folder) => `${folder}/dist/index.js`),
    work: ({ env, log }) =>
      run(
        process.execPath,
        [
          join(root, 'node_modules/typescript/bin/tsc'),
          '-b',
          ...packageFolders(root).map((folder) => `${folder}/tsconfig.lib.json`),
        ],
        { cwd: root, env, log, what: 'tsc -b', code: 'BOOT_E_TYPESCRIPT' },
      ),
  });
}

/** The targets that compile C and C++: `build-native` (addon) and `build-init` (the sandbox's first process). */
const NATIVE_TARGETS = ['build-native', 'build-init'];

function nativeTargets(root) {
  return packageFolders(root).flatMap((folder) => {
    const targets = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')).nx?.targets ?? {};
    return NATIVE_TARGETS.filter((name) => targets[name] !== undefined).map((name) => ({
      folder,
      name,
      target: targets[name],
    }));
  });
}

export function nativeBuild(context) {
  const { root } = context;
  return sourceStep(context, {
    id: 'native',
    title: 'native addon and sandbox init',
    needs: ['npm-packages', 'system-packages'],
    files: () => ['tools/toolchain-fingerprint.mjs', ...sources(root, isNativeSource)],
    outputs: () =>
      nativeTargets(root).flatMap(({ folder, target }) =>
        (target.outputs ?? []).map((output) => output.replace('{projectRoot}', folder)),
      ),
    work: ({ env, log }) =>
      run(
        process.execPath,
        [nxEntry(root), 'run-many', '-t', NATIVE_TARGETS.join(','), '--outputStyle=static'],
        {
          cwd: root,
          env: nxEnvironment(env),
          log,
          what: 'compiling the native addon and the sandbox init',
          code: 'BOOT_E_NATIVE',
          hints: ['g++, make and cmake are needed; CUDA is optional'],
        },
      ),
  });
}

/** The learner's kernels as operators of the libtensorflow behind tfjs-node, whose headers the `tfjs-binding` step links. */
export function tensorflowOperators(context) {
  const { root, pins } = context;
  return sourceStep(context, {
    id: 'tensorflow-operators',
    title: 'TensorFlow operators',
    needs: ['tfjs-binding', 'system-packages'],
    files: () => listFiles(root, 'native', skip).filter(isNativeSource),
    outputs: () => ['native/build/tensorflow/treeward_tensorflow.node'],
    extra: [pins.tensorflow.sha256],
    work: ({ env, log }) =>
      run(join(root, 'native/scripts/build-tensorflow.sh'), [], {
        cwd: root,
        env,
        log,
        what: 'compiling the TensorFlow operators',
        code: 'BOOT_E_NATIVE',
        hints: ['g++, make and cmake are needed'],
      }),
  });
}
