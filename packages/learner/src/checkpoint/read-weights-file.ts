import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { TreewardError, type NamedTensor } from '@treeward/base';

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** Bytes of a value, and its float32 values from raw little-endian ones. */
const FLOATS: Readonly<Record<string, { bytes: number; read: (raw: ArrayBuffer) => Float32Array }>> = {
  F32: { bytes: 4, read: (raw) => new Float32Array(raw) },
  F64: { bytes: 8, read: (raw) => Float32Array.from(new Float64Array(raw)) },
  BF16: { bytes: 2, read: (raw) => fromBfloat16(new Uint16Array(raw)) },
  F16: { bytes: 2, read: (raw) => fromFloat16(new Uint16Array(raw)) },
};

/** bfloat16 is the upper half of a float32. */
function fromBfloat16(raw: Uint16Array): Float32Array {
  const out = new Float32Array(raw.length);
  const bits = new Uint32Array(out.buffer);
  for (let i = 0; i < raw.length; i++) bits[i] = raw[i]! << 16;
  return out;
}

function fromFloat16(raw: Uint16Array): Float32Array {
  const out = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i++) {
    const half = raw[i]!;
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    if (exponent === 0) out[i] = sign * fraction * 2 ** -24;
    else if (exponent === 31) out[i] = fraction ? NaN : sign * Infinity;
    else out[i] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return out;
}

/**
 * The arrays of a safetensors file as float32, read one by one: a shard of several GiB is never in memory as a whole.
 *
 * @param wanted names to read; others are skipped
 * @throws TreewardError LEARNER_E_WEIGHTS naming file and tensor
 */
export function readWeightsFile(
  path: string,
  wanted: (name: string) => boolean = () => true,
): Map<string, NamedTensor> {
  const bad = (why: string): TreewardError =>
    new TreewardError('LEARNER_E_WEIGHTS', `${path}: ${why}`, { data: { file: path } });
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    throw new TreewardError('LEARNER_E_WEIGHTS', `cannot read ${path}`, { cause, data: { file: path } });
  }
  try {
    const size = fstatSync(file).size;
    const read = (at: number, bytes: number): Buffer => {
      const buffer = Buffer.alloc(bytes);
      for (let done = 0; done < bytes;) {
        const got = readSync(file, buffer, done, Math.min(bytes - done, 1 << 30), at + done);
        if (got === 0) throw bad('ends before its data');
        done += got;
      }
      return buffer;
    };
    if (size < 8) throw bad('shorter than its header');
    const headerLength = Number(read(0, 8).readBigUInt64LE(0));
    if (headerLength > size - 8) throw bad('its header runs past the end');
    let header: Record<string, Entry>;
    try {
      header = JSON.parse(read(8, headerLength).toString('utf8')) as Record<string, Entry>;
    } catch (cause) {
      throw new TreewardError('LEARNER_E_WEIGHTS', `${path}: the header is not JSON`, { cause });
    }
    const tensors = new Map<string, NamedTensor>();
    for (const [name, entry] of Object.entries(header)) {
      if (name === '__metadata__' || !wanted(name)) continue;
      const kind = FLOATS[entry.dtype];
      if (!kind) {
        throw bad(
          `tensor ${name} has dtype ${entry.dtype}, read as float32: ${Object.keys(FLOATS).join(', ')}`,
        );
      }
      const [start, end] = entry.data_offsets;
      const count = entry.shape.reduce((product, n) => product * n, 1);
      if (start < 0 || 8 + headerLength + end > size || end - start !== count * kind.bytes) {
        throw bad(`tensor ${name} has offsets outside the file or not of its shape`);
      }
      const raw = read(8 + headerLength + start, end - start);
      tensors.set(name, { shape: entry.shape, data: kind.read(raw.buffer as ArrayBuffer) });
    }
    return tensors;
  } finally {
    closeSync(file);
  }
}
