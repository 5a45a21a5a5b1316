import type { TreeAttentionInput, TreeAttentionOptions } from '../tree-attention.js';

export function isVisible(input: TreeAttentionInput, q: number, k: number): boolean {
  const p = input.position_Q[q]!;
  if (k <= p && p < input.end_K[k]!) return true;
  if (!input.start_Q || !input.finish_K || !input.firstKey_Q || !input.lastKey_Q) return false;
  return input.finish_K[k]! < input.start_Q[q]! && input.firstKey_Q[q]! <= k && k < input.lastKey_Q[q]!;
}

/** Slow, plain, float64, with the dense mask. Tests only; float32 operands. */
export function treeAttentionReference(
  input: TreeAttentionInput,
  { heads: H, keyHeads: J, dim: D, scale = 1 / Math.sqrt(D) }: TreeAttentionOptions,
  gradOutput_QHD?: ArrayLike<number>,
): Record<'output_QHD' | 'gradQuery_QHD' | 'gradKey_KJD' | 'gradValue_KJD', Float64Array> {
  const [Q, K] = [input.position_Q.length, input.end_K.length];
  const { query_QHD, key_KJD, value_KJD } = input;
  const output_QHD = new Float64Array(Q * H * D);
  const gradQuery_QHD = new Float64Array(Q * H * D);
  const gradKey_KJD = new Float64Array(K * J * D);
  const gradValue_KJD = new Float64Array(K * J * D);
  for (let q = 0; q < Q; q++) {
    const seen = Array.from({ length: K }, (_, k) => k).filter((k) => isVisible(input, q, k));
    for (let h = 0; h < H; h++) {
      const at = (q * H + h) * D;
      const keyAt = (k: number): number => (k * J + Math.floor((h * J) / H)) * D;
      const scores = seen.map((k) => {
        let sum = 0;
        for (let d = 0; d < D; d++) sum += query_QHD[at + d]! * key_KJD[keyAt(k) + d]!;
        return sum * scale;
      });
      const largest = Math.max(...scores);
      const total = scores.reduce((sum, s) => sum + Math.exp(s - largest), 0);
      const p = scores.map((s) => Math.exp(s - largest) / total);
      seen.forEach((k, i) => {
        for (let d = 0; d < D; d++) output_QHD[at + d]! += p[i]! * value_KJD[keyAt(k) + d]!;
      });
      if (!gradOutput_QHD) continue;
      const gradP = seen.map((k) => {
        let sum = 0;
        for (let d = 0; d < D; d++) sum += gradOutput_QHD[at + d]! * value_KJD[keyAt(k) + d]!;
        return sum;
      });
      const mean = gradP.reduce((sum, g, i) => sum + g * p[i]!, 0);
      seen.forEach((k, i) => {
        const gradScore = p[i]! * (gradP[i]! - mean) * scale;
        for (let d = 0; d < D; d++) {
          gradQuery_QHD[at + d]! += gradScore * key_KJD[keyAt(k) + d]!;
          gradKey_KJD[keyAt(k) + d]! += gradScore * query_QHD[at + d]!;
          gradValue_KJD[keyAt(k) + d]! += p[i]! * gradOutput_QHD[at + d]!;
        }
      });
    }
  }
  return { output_QHD, gradQuery_QHD, gradKey_KJD, gradValue_KJD };
}
