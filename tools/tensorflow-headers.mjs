// Unpacks TensorFlow's C++ headers from the wheel that the bootstrap takes libtensorflow from, into the cache folder, and prints
// where they are. The GPU build's wheel holds the same ones. Run by build-tensorflow-gpu.sh only: nothing else needs them.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from './lib/errors.mjs';
import { withLock } from './lib/lock.mjs';
import { cacheRoot, root, writableFolder } from './lib/paths.mjs';
import { readStamp, writeStamp } from './lib/stamp.mjs';
import { extractEntry, listZip } from './lib/unzip.mjs';
import { buildFolder } from './lib/workfolder.mjs';
import { pins } from './setup.mjs';
import { downloadWheel } from './steps/libtensorflow.mjs';

/** What `tensorflow/core/framework/op_kernel.h` and the stream's header reach. */
const WANTED =
  /^tensorflow\/include\/(?:absl|Eigen|google|ml_dtypes|tensorflow\/c(?:ore)?|tsl|unsupported|xla)\//;

const say = (text) => process.stderr.write(`[tensorflow-headers] ${text}\n`);

async function main() {
  const pin = pins.tensorflow;
  const cache = writableFolder(cacheRoot());
  const target = join(cache, 'libtensorflow', `headers-${pin.version}`);
  const ready = () => readStamp(join(target, 'ok.json'))?.sha256 === pin.sha256;
  if (ready()) return target;
  return withLock(
    join(cache, 'locks/tensorflow-headers.lock'),
    async () => {
      if (ready()) return target;
      const wheels = join(cache, 'wheels');
      const context = { env: process.env, log: join(root, '.treeward-setup/tensorflow-headers.log'), say };
      const wheel = await downloadWheel(context, pin, wheels, 'which carries the headers');
      say('unpacking');
      await buildFolder(target, async (work) => {
        const entries = (await listZip(wheel)).filter(({ name }) => WANTED.test(name) && !name.endsWith('/'));
        for (const entry of entries) {
          await extractEntry(wheel, entry, join(work, entry.name.slice('tensorflow/include/'.length)));
        }
        writeStamp(join(work, 'ok.json'), { sha256: pin.sha256 });
      });
      rmSync(wheel, { force: true });
      return target;
    },
    { log: say },
  );
}

try {
  process.stdout.write(`${await main()}\n`);
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = 1;
}
