import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeTensors, readTensors, writeTensors, type NamedTensor } from './arrays.js';

const directory = mkdtempSync(join(tmpdir(), 'treeward-arrays-'));
const path = join(directory, 'x.safetensors');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const tensor = fc
  .oneof(
    fc.float32Array({ maxLength: 9 }),
    fc.int32Array({ maxLength: 9 }),
    fc.uint8Array({ maxLength: 9 }),
    fc.float64Array({ maxLength: 9 }),
  )
  .map((data): NamedTensor => ({ shape: data.length % 2 ? [data.length] : [data.length / 2, 2], data }));

describe('safetensors', () => {
  it('round-trips names, shapes, types, values and metadata', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ minLength: 1 }), tensor, { maxKeys: 5 }),
        fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
        (dictionary, metadata) => {
          const tensors = new Map(Object.entries(dictionary));
          writeTensors(path, tensors, metadata);
          const read = readTensors(path);
          expect(new Map([...read.tensors].sort())).toEqual(new Map([...tensors].sort()));
          expect(read.metadata).toEqual({ ...metadata });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('writes the published layout', () => {
    const bytes = Buffer.from(
      encodeTensors(new Map([['w', { shape: [2, 1], data: Float32Array.of(1, -2) }]]), { k: 'v' }),
    );
    const length = Number(bytes.readBigUInt64LE(0));
    expect(length % 8).toBe(0);
    expect(JSON.parse(bytes.toString('utf8', 8, 8 + length))).toEqual({
      __metadata__: { k: 'v' },
      w: { dtype: 'F32', shape: [2, 1], data_offsets: [0, 8] },
    });
    expect([bytes.readFloatLE(8 + length), bytes.readFloatLE(12 + length)]).toEqual([1, -2]);
    expect(bytes.length).toBe(16 + length);
  });

  it('writes a view, not the buffer behind it', () => {
    const data = Int32Array.of(9, 1, 2, 9).subarray(1, 3);
    writeTensors(path, new Map([['v', { shape: [2], data }]]));
    expect(readTensors(path).tensors.get('v')!.data).toEqual(Int32Array.of(1, 2));
  });

  it('refuses a shape that does not fit, and the reserved name', () => {
    const data = Int32Array.of(1, 2, 3);
    expect(() => encodeTensors(new Map([['w', { shape: [2, 2], data }]]))).toThrow(
      expect.objectContaining({ code: 'TENSOR_E_SHAPE', message: expect.stringContaining('w') }),
    );
    expect(() => encodeTensors(new Map([['__metadata__', { shape: [3], data }]]))).toThrow(
      expect.objectContaining({ code: 'TENSOR_E_NAME' }),
    );
  });

  it('names a file that is missing, cut anywhere, or not of this format', () => {
    expect(() => readTensors(join(directory, 'none'))).toThrow(
      expect.objectContaining({ code: 'FILE_E_MISSING' }),
    );
    writeTensors(path, new Map([['w', { shape: [3], data: Int32Array.of(1, 2, 3) }]]));
    const whole = readFileSync(path);
    for (let length = 0; length < whole.length; length++) {
      writeFileSync(path, whole.subarray(0, length));
      expect(() => readTensors(path)).toThrow(
        expect.objectContaining({ code: 'TENSOR_E_FILE', data: { file: path } }),
      );
    }
  });

  it.each([
    ['null', /header is not an object/],
    ['{"w":null}', /tensor w lacks/],
    ['{"w":{"dtype":"F32","shape":[1]}}', /tensor w lacks/],
    ['{"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}', /dtype BF16; supported: F32/],
    ['{"w":{"dtype":"constructor","shape":[1],"data_offsets":[0,4]}}', /dtype constructor/],
    ['{"w":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}', /tensor w lacks/],
    [
      '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}}',
      /offsets outside the file or not of its shape/,
    ],
    ['{"w":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}', /offsets outside the file/],
  ])('refuses the header %s', (header, message) => {
    const bytes = Buffer.alloc(8 + header.length + 8);
    bytes.writeBigUInt64LE(BigInt(header.length));
    bytes.write(header, 8);
    writeFileSync(path, bytes);
    expect(() => readTensors(path)).toThrow(message);
  });
});
