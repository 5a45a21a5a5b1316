import { readFileSync } from 'node:fs';
import { TreewardError } from './errors.js';
import { writeFileAtomic } from './files.js';

/**
 * Named arrays in a file: the safetensors format (8-byte little-endian header length, JSON header, raw data).
 * Weights, optimizer state, trees and batches all travel between processes this way, never inside a message.
 */
export type TensorData = Float32Array | Int32Array | Uint8Array | Float64Array;

export interface NamedTensor {
  shape: readonly number[];
  data: TensorData;
}

export interface TensorFile {
  tensors: Map<string, NamedTensor>;
  metadata: Record<string, string>;
}

const DTYPE = { F32: Float32Array, I32: Int32Array, U8: Uint8Array, F64: Float64Array } as const;
type Dtype = keyof typeof DTYPE;

const dtypeOf = (data: TensorData): Dtype =>
  data instanceof Float32Array
    ? 'F32'
    : data instanceof Int32Array
      ? 'I32'
      : data instanceof Float64Array
        ? 'F64'
        : 'U8';

export function encodeTensors(
  tensors: ReadonlyMap<string, NamedTensor>,
  metadata: Record<string, string> = {},
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const [name, { shape, data }] of tensors) {
    if (name === '__metadata__') {
      throw new TreewardError(
        'TENSOR_E_NAME',
        'no tensor can be named __metadata__: the format keeps that name',
      );
    }
    const count = shape.reduce((product, n) => product * n, 1);
    if (count !== data.length) {
      throw new TreewardError(
        'TENSOR_E_SHAPE',
        `tensor ${name}: shape [${shape.join()}] needs ${count} values, got ${data.length}`,
      );
    }
    header[name] = { dtype: dtypeOf(data), shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  let json = Buffer.from(JSON.stringify(header));
  // Data starts 8-byte aligned, so that views work without copying.
  json = Buffer.concat([json, Buffer.alloc((8 - (json.length % 8)) % 8, ' ')]);
  const out = Buffer.alloc(8 + json.length + offset);
  out.writeBigUInt64LE(BigInt(json.length));
  json.copy(out, 8);
  let at = 8 + json.length;
  for (const { data } of tensors.values()) {
    out.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return out;
}

export function writeTensors(
  path: string,
  tensors: ReadonlyMap<string, NamedTensor>,
  metadata: Record<string, string> = {},
): void {
  writeFileAtomic(path, encodeTensors(tensors, metadata));
}

/** @throws TreewardError TENSOR_E_FILE when the file is cut, has an unknown dtype or offsets outside it */
export function readTensors(path: string): TensorFile {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new TreewardError('FILE_E_MISSING', `cannot read ${path}`, { cause, data: { file: path } });
  }
  const bad = (why: string): TreewardError =>
    new TreewardError('TENSOR_E_FILE', `${path} is not a usable safetensors file: ${why}`, {
      data: { file: path },
    });
  if (bytes.length < 8) throw bad('shorter than its header');
  const headerLength = Number(bytes.readBigUInt64LE(0));
  if (headerLength > bytes.length - 8) throw bad('header runs past the end');
  let header: unknown;
  try {
    header = JSON.parse(bytes.subarray(8, 8 + headerLength).toString('utf8'));
  } catch {
    throw bad('header is not JSON');
  }
  if (typeof header !== 'object' || header === null) throw bad('header is not an object');
  const base = 8 + headerLength;
  const tensors = new Map<string, NamedTensor>();
  let metadata: Record<string, string> = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') {
      metadata = entry as Record<string, string>;
      continue;
    }
    if (!isEntry(entry)) throw bad(`tensor ${name} lacks dtype, shape or offsets`);
    if (!Object.hasOwn(DTYPE, entry.dtype)) {
      throw bad(`tensor ${name} has dtype ${entry.dtype}; supported: ${Object.keys(DTYPE).join(', ')}`);
    }
    const Kind = DTYPE[entry.dtype as Dtype];
    const [start, end] = entry.data_offsets;
    const count = entry.shape.reduce((product, n) => product * n, 1);
    if (start < 0 || base + end > bytes.length || end - start !== count * Kind.BYTES_PER_ELEMENT) {
      throw bad(`tensor ${name} has offsets outside the file or not of its shape`);
    }
    // A copy: the file's buffer may be unaligned for this type.
    const copy = bytes.buffer.slice(
      bytes.byteOffset + base + start,
      bytes.byteOffset + base + end,
    ) as ArrayBuffer;
    tensors.set(name, { shape: entry.shape, data: new Kind(copy) });
  }
  return { tensors, metadata };
}

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null) return false;
  const { dtype, shape, data_offsets: offsets } = value as Record<string, unknown>;
  const naturals = (list: unknown): boolean =>
    Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  return (
    typeof dtype === 'string' && naturals(shape) && naturals(offsets) && (offsets as unknown[]).length === 2
  );
}
