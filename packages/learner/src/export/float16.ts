/** IEEE half precision, rounded to nearest even; beyond its range ±infinity. */
export function toFloat16(values: Float32Array): Uint16Array {
  const out = new Uint16Array(values.length);
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < values.length; i++) out[i] = half(bits[i]!);
  return out;
}

function half(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const exponent = ((bits >>> 23) & 0xff) - 127;
  const fraction = bits & 0x7fffff;
  if (exponent === 128) return sign | 0x7c00 | (fraction ? 0x200 : 0);
  if (exponent > 15) return sign | 0x7c00;
  // Below 2⁻¹⁴ the leading 1 is written out and the exponent is 0.
  const normal = exponent >= -14;
  if (exponent < -25) return sign;
  const mantissa = normal ? fraction : fraction | 0x800000;
  const shift = normal ? 13 : -exponent - 1;
  const kept = mantissa >>> shift;
  const rest = mantissa & ((1 << shift) - 1);
  const middle = 1 << (shift - 1);
  const up = rest > middle || (rest === middle && (kept & 1) === 1) ? 1 : 0;
  // A carry out of the mantissa is the next exponent.
  return sign | ((normal ? (exponent + 15) << 10 : 0) + kept + up);
}
