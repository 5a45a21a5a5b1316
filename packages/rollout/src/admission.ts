import { readFileSync } from 'node:fs';

export interface AdmissionOptions {
  /** Bytes that all rollouts together may usually take. @default 85 % of what is available when the pool starts to run */
  budget?: number;
  /** Bytes of memory that can be had now. @default MemAvailable */
  available?: () => number;
}

/** Bytes of one rollout's sandbox. */
export interface MemoryNeed {
  /** More it cannot take. */
  limit: number;
  /** What it comes to in an ordinary rollout: a limit is a ceiling, and harnesses stay well below theirs. */
  usual: number;
}

/**
 * Whether one more rollout fits into memory: by what those in flight usually come to, also those that have only begun, and
 * by what is really free: one may always grow to its limit. One alone always fits, so that a small machine is slow and not
 * stuck.
 */
export class MemoryAdmission {
  readonly #budget: number;
  readonly #available: () => number;
  #inFlight = 0;
  #promised = 0;

  constructor(options: AdmissionOptions = {}) {
    this.#available = options.available ?? memoryAvailable;
    this.#budget = options.budget ?? this.#available() * 0.85;
  }

  admits({ limit, usual }: MemoryNeed): boolean {
    if (this.#inFlight === 0) return true;
    return this.#promised + usual <= this.#budget && this.#available() >= limit;
  }

  enter({ usual }: MemoryNeed): void {
    this.#inFlight++;
    this.#promised += usual;
  }

  leave({ usual }: MemoryNeed): void {
    this.#inFlight--;
    this.#promised -= usual;
  }
}

/** Bytes that can be had without swapping; Infinity where nobody says. */
export function memoryAvailable(): number {
  try {
    const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    return kib === undefined ? Infinity : Number(kib) * 1024;
  } catch {
    return Infinity; // not Linux: nothing to go by
  }
}
