import { ropeTables } from '@treeward/native';

/** How rotary frequencies are changed for contexts longer than those of pre-training (transformers' `rope_type`). */
export type RopeScaling =
  | { type: 'default' }
  /** Positions divided by `factor`. */
  | { type: 'linear'; factor: number }
  /** Slow frequencies divided by `factor`, fast ones kept, in between interpolated (Llama 3.1). */
  | {
      type: 'llama3';
      factor: number;
      lowFreqFactor: number;
      highFreqFactor: number;
      originalMaxPositions: number;
    }
  /** YaRN; `attentionFactor` multiplies cosine and sine. */
  | {
      type: 'yarn';
      factor: number;
      betaFast: number;
      betaSlow: number;
      originalMaxPositions: number;
      attentionFactor: number;
      truncate: boolean;
    };

interface RopeShape {
  headDim: number;
  ropeTheta: number;
  ropeScaling: RopeScaling;
}

/** Angle per position of each pair (i, i + h/2), as transformers computes them. */
export function inverseFrequencies({ headDim: h, ropeTheta, ropeScaling: s }: RopeShape): Float64Array {
  const half = h / 2;
  const plain = Float64Array.from({ length: half }, (_, i) => Math.pow(ropeTheta, (-2 * i) / h));
  switch (s.type) {
    case 'default':
      return plain;
    case 'linear':
      return plain.map((w) => w / s.factor);
    case 'llama3': {
      const longest = s.originalMaxPositions / s.lowFreqFactor;
      const shortest = s.originalMaxPositions / s.highFreqFactor;
      return plain.map((w) => {
        const wavelength = (2 * Math.PI) / w;
        if (wavelength < shortest) return w;
        if (wavelength > longest) return w / s.factor;
        const smooth =
          (s.originalMaxPositions / wavelength - s.lowFreqFactor) / (s.highFreqFactor - s.lowFreqFactor);
        return ((1 - smooth) * w) / s.factor + smooth * w;
      });
    }
    case 'yarn': {
      const dimension = (rotations: number): number =>
        (h * Math.log(s.originalMaxPositions / (rotations * 2 * Math.PI))) / (2 * Math.log(ropeTheta));
      const [first, last] = [dimension(s.betaFast), dimension(s.betaSlow)];
      const low = Math.max(0, s.truncate ? Math.floor(first) : first);
      const high = Math.min(h - 1, s.truncate ? Math.ceil(last) : last);
      const width = high === low ? 0.001 : high - low;
      return plain.map((w, i) => {
        const interpolated = Math.min(1, Math.max(0, (i - low) / width));
        return (w / s.factor) * interpolated + w * (1 - interpolated);
      });
    }
  }
}

interface PositionTables {
  positions: number;
  /** cos(p·ω_i) for the pair (i, i + h/2), [P, h/2]. */
  cos_Pf: Float32Array;
  sin_Pf: Float32Array;
}

/** Angles of the first positions, for rotary embedding as transformers has it ("rotate half"). */
export function positionTables(shape: RopeShape, positions: number): PositionTables {
  const { ropeScaling } = shape;
  const scale = ropeScaling.type === 'yarn' ? ropeScaling.attentionFactor : 1;
  const { cos_PF, sin_PF } = ropeTables(positions, inverseFrequencies(shape), scale);
  return { positions, cos_Pf: cos_PF, sin_Pf: sin_PF };
}
