import type { ModelConfig } from './config.js';

/** What a pass over rows of one length needs beside weights: positions and the causal mask. */
export interface PositionTables {
  /** cos(t·ω_i) for the pair (i, i + h/2), repeated in both halves. */
  cos_Th: Float32Array;
  /** sin with the sign of the rotated half: − in the first, + in the second. */
  signedSin_Th: Float32Array;
}

/** Rotary embedding as transformers' Qwen3 has it ("rotate half"): out = x·cos + [−x₂, x₁]·sin. */
export function positionTables(config: ModelConfig, length: number): PositionTables {
  const h = config.headDim;
  const half = h / 2;
  const cos_Th = new Float32Array(length * h);
  const signedSin_Th = new Float32Array(length * h);
  for (let t = 0; t < length; t++) {
    for (let i = 0; i < half; i++) {
      const angle = t * Math.pow(config.ropeTheta, (-2 * i) / h);
      cos_Th[t * h + i] = cos_Th[t * h + half + i] = Math.cos(angle);
      signedSin_Th[t * h + i] = -Math.sin(angle);
      signedSin_Th[t * h + half + i] = Math.sin(angle);
    }
  }
  return { cos_Th, signedSin_Th };
}

/** Added to scores: 0 where the key is not after the query. Repeated for the query heads that share a key head. */
export function causalMask(length: number, repeat: number): Float32Array {
  const mask = new Float32Array(repeat * length * length);
  for (let g = 0; g < repeat; g++) {
    for (let q = 0; q < length; q++) {
      mask.fill(-1e9, (g * length + q) * length + q + 1, (g * length + q + 1) * length);
    }
  }
  return mask;
}
