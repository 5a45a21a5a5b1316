import type { Random } from '@treeward/base';
import { OPEN_POOLS, POOLS, RESERVED_WORDS, SYLLABLE_SHARE } from './pools.js';
import type { PoolName, Slot } from './types.js';

const FIXED: ReadonlySet<string> = new Set(Object.values(POOLS).flat());

function syllables(random: Random): string {
  const count = 2 + random.below(2);
  let word = '';
  for (let i = 0; i < count; i++) word += random.pick([...'bdfgklmnprstvz']) + random.pick([...'aeiou']);
  return word;
}

/** A value of the pool for which `usable` holds. Every pool is far larger than what one task takes from it. */
export function drawFrom(pool: PoolName, random: Random, usable: (value: string) => boolean): string {
  for (;;) {
    let value: string;
    if (pool === 'number') value = String(100 + random.below(900));
    else if (OPEN_POOLS.has(pool) && random.next() < SYLLABLE_SHARE) {
      value = syllables(random);
      if (FIXED.has(value) || RESERVED_WORDS.has(value)) continue;
    } else value = random.pick(POOLS[pool]);
    if (usable(value)) return value;
  }
}

/**
 * Draws the values of one task and remembers them as slots. Values of a pool never repeat within a task, so that equality
 * of two strings in a task always means that they are the same thing.
 */
export class Draw {
  readonly #random: Random;
  readonly #slots = new Map<string, PoolName>();

  constructor(random: Random) {
    this.#random = random;
  }

  get slots(): Slot[] {
    return [...this.#slots].map(([value, pool]) => ({ value, pool }));
  }

  value(pool: PoolName): string {
    const value = drawFrom(pool, this.#random, (v) => !this.#slots.has(v));
    this.#slots.set(value, pool);
    return value;
  }

  values(pool: PoolName, count: number): string[] {
    return Array.from({ length: count }, () => this.value(pool));
  }

  /** A file name that no other file of the task has; half of them end in a digit. */
  file(extension: string): string {
    const digit = this.chance(0.5) ? String(1 + this.below(9)) : '';
    return `${this.value('stem')}${digit}.${extension}`;
  }

  below(n: number): number {
    return this.#random.below(n);
  }

  chance(share: number): boolean {
    return this.#random.next() < share;
  }

  pick<T>(items: readonly T[]): T {
    return this.#random.pick(items);
  }

  shuffle<T>(items: readonly T[]): T[] {
    return this.#random.shuffle(items);
  }

  /** Different integers in [from, to), in random order. */
  integers(count: number, from: number, to: number): number[] {
    return this.shuffle(Array.from({ length: to - from }, (_, i) => from + i)).slice(0, count);
  }
}
