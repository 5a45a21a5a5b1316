/** Warm-up, then cosine to 5 %, over progress in [0, 1] (wall time: the machine's speed decides how many steps fit). */
export function sftRate(base: number, step: number, progress: number, warmup = 60): number {
  const cosine = 0.5 * (1 + Math.cos(Math.PI * Math.min(1, progress)));
  return base * Math.min(1, step / warmup) * (0.05 + 0.95 * cosine);
}
