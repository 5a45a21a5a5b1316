/** Whether two large arrays hold the same bits; `toEqual` takes seconds over a million values. */
export const sameBits = (a: Float32Array, b: Float32Array): boolean =>
  Buffer.compare(
    new Uint8Array(a.buffer, a.byteOffset, a.byteLength),
    new Uint8Array(b.buffer, b.byteOffset, b.byteLength),
  ) === 0;
