/** @throws naming the first entry where |got − want| exceeds absolute + relative · |want|, NaN included */
export function close(
  got: ArrayLike<number> | undefined,
  want: ArrayLike<number>,
  absolute: number,
  relative: number,
  what: string,
): void {
  if (got?.length !== want.length) throw new Error(`${what} has ${got?.length} values, not ${want.length}`);
  for (let i = 0; i < want.length; i++) {
    if (!(Math.abs(got[i]! - want[i]!) <= absolute + relative * Math.abs(want[i]!))) {
      throw new Error(`${what}[${i}]: got ${got[i]}, want ${want[i]}`);
    }
  }
}

/** float32 values as bfloat16 (cut off), and what they then are. */
export function bfloat16(values: Float32Array): { bits: Uint16Array; values: Float32Array } {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bits = Uint16Array.from(words, (word) => word >>> 16);
  return { bits, values: new Float32Array(Uint32Array.from(bits, (half) => half << 16).buffer) };
}

/** The code of what a call throws. */
export function codeOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
}
