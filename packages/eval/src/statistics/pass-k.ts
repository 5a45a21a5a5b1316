/**
 * Unbiased estimate of pass^k, the chance that k fresh runs of a task ALL pass, from c passes in n runs: C(c,k) ÷ C(n,k).
 * Null for n < k, where there is none.
 */
export function passHatK(n: number, c: number, k: number): number | null {
  if (n < k) return null;
  let value = 1;
  for (let i = 0; i < k; i++) value *= Math.max(0, c - i) / (n - i);
  return value;
}

/** Unbiased estimate of pass@k, the chance that at least one of k fresh runs passes: 1 − C(n−c,k) ÷ C(n,k). Null for n < k. */
export function passAtK(n: number, c: number, k: number): number | null {
  const none = passHatK(n, n - c, k);
  return none === null ? null : 1 - none;
}
