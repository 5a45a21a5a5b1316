/** A value of a GGUF file's metadata. */
export type Value =
  | { type: 'u32'; value: number }
  | { type: 'f32'; value: number }
  | { type: 'string'; value: string }
  | { type: 'strings'; value: readonly string[] }
  | { type: 'i32s'; value: readonly number[] };

const TYPE = { u32: 4, i32: 5, f32: 6, string: 8, array: 9 } as const;

/** Every tensor begins at a multiple of this. */
export const ALIGNMENT = 32;

/** Little-endian bytes in the order in which they are written. */
export class GgufWriter {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  bytes(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }
  u32(n: number): void {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(n);
    this.bytes(b);
  }
  u64(n: number): void {
    const b = Buffer.alloc(8);
    b.writeBigUInt64LE(BigInt(n));
    this.bytes(b);
  }
  string(text: string): void {
    const b = Buffer.from(text);
    this.u64(b.length);
    this.bytes(b);
  }
  value(field: Value): void {
    if (field.type === 'strings' || field.type === 'i32s') {
      this.u32(TYPE.array);
      this.u32(field.type === 'strings' ? TYPE.string : TYPE.i32);
      this.u64(field.value.length);
      for (const item of field.value) {
        if (typeof item === 'string') this.string(item);
        else this.u32(item);
      }
      return;
    }
    this.u32(TYPE[field.type]);
    if (field.type === 'string') this.string(field.value);
    else if (field.type === 'u32') this.u32(field.value);
    else {
      const b = Buffer.alloc(4);
      b.writeFloatLE(field.value);
      this.bytes(b);
    }
  }
  align(): void {
    this.bytes(Buffer.alloc((ALIGNMENT - (this.#length % ALIGNMENT)) % ALIGNMENT));
  }
  finish(): Buffer {
    return Buffer.concat(this.#chunks, this.#length);
  }
}
