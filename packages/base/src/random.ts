import { createHash } from 'node:crypto';

/** A seeded stream of numbers. Same seed and labels, same stream, on every machine. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, n). */
  below(n: number): number;
  /** @throws RangeError for an empty list */
  pick<T>(items: readonly T[]): T;
  /** A new array in random order. */
  shuffle<T>(items: readonly T[]): T[];
  /** Standard normal. */
  normal(): number;
}

/**
 * An independent stream named by its labels: `randomStream(seed, 'rollout', step, id)`. Streams are derived, never
 * shared, so that the order in which concurrent work happens to run cannot change what is drawn. Generator: sfc32.
 */
export function randomStream(seed: number | string, ...labels: readonly (number | string)[]): Random {
  const digest = createHash('sha256')
    .update(JSON.stringify([seed, ...labels]))
    .digest();
  let a = digest.readInt32LE(0);
  let b = digest.readInt32LE(4);
  let c = digest.readInt32LE(8);
  let counter = 1;

  const bits = (): number => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    c |= 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) bits();

  const next = (): number => (bits() * 2097152 + (bits() >>> 11)) / 9007199254740992; // 53 bits
  const below = (n: number): number => Math.floor(next() * n);
  const pick = <T>(items: readonly T[]): T => {
    if (items.length === 0) throw new RangeError('pick from an empty list');
    return items[below(items.length)] as T;
  };
  const shuffle = <T>(items: readonly T[]): T[] => {
    const out = [...items];
    for (let i = out.length - 1; i > 0; i--) {
      const j = below(i + 1);
      [out[i], out[j]] = [out[j] as T, out[i] as T];
    }
    return out;
  };
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return { next, below, pick, shuffle, normal };
}
