import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../lib/lock.mjs';
import { readStamp, writeStamp } from '../lib/stamp.mjs';
import { extractEntry, listZip } from '../lib/unzip.mjs';
import { buildFolder } from '../lib/workfolder.mjs';
import { downloadWheel, libtensorflowFolder } from './libtensorflow.mjs';

/** Shared libraries, and what CUDA's compiler needs at run time for kernels it has no code of. */
const WANTED = /^nvidia\/[^/]+\/(lib\/.*\.so[.\d]*|nvvm\/libdevice\/.*|bin\/(ptxas|nvlink))$/;

/**
 * CUDA and cuDNN as the wheels that the GPU build of TensorFlow names, unpacked to where its library looks for them:
 * `../nvidia/<part>/lib` beside its own folder.
 *
 * @returns the step's outcome
 */
export async function provideCudaLibraries(context) {
  const { cache, pins, say } = context;
  const target = join(libtensorflowFolder(context), 'nvidia');
  const key = pins.cudaLibraries.map(({ sha256 }) => sha256).join(' ');
  const ready = () => readStamp(join(target, 'ok.json'))?.key === key;
  if (ready()) return { status: 'ready' };
  return withLock(
    join(cache, 'locks/cuda-libraries.lock'),
    async () => {
      if (ready()) return { status: 'ready' };
      const wheels = join(cache, 'wheels');
      const { python, abi } = pins.tensorflow;
      await buildFolder(target, async (work) => {
        for (const pin of pins.cudaLibraries) {
          const wheel = await downloadWheel(context, { ...pin, python, abi }, wheels, 'a part of CUDA');
          say(`unpacking ${pin.package}`);
          const entries = await listZip(wheel);
          for (const entry of entries.filter(({ name }) => WANTED.test(name))) {
            await extractEntry(wheel, entry, join(work, entry.name.slice('nvidia/'.length)));
          }
          rmSync(wheel, { force: true });
        }
        writeStamp(join(work, 'ok.json'), { key });
      });
      const megabytes = pins.cudaLibraries.reduce((sum, { wheelMegabytes }) => sum + wheelMegabytes, 0);
      return { status: 'done', detail: `downloaded ${megabytes} MB` };
    },
    { log: say },
  );
}

/** Whether this machine has an NVIDIA driver. */
export const hasNvidiaDriver = () =>
  existsSync('/proc/driver/nvidia/version') || existsSync('/dev/nvidiactl');
