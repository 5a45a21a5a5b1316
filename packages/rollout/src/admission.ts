import { readFileSync } from 'node:fs';

export interface AdmissionOptions {
  /** Bytes that all rollouts together may count for. @default 85 % of what is available when the pool starts to run */
  budget?: number;
  /**
   * How many times the budget the limits may add up to: a limit is a ceiling, and harnesses stay well below theirs (Claude
   * Code takes a third of its GiB). @default 2
   */
  overcommit?: number;
  /** Bytes of memory that can be had now. @default MemAvailable */
  available?: () => number;
}

/**
 * Whether one more rollout fits into memory: by what those in flight may come to, and by what is really free. One alone
 * always fits, so that a small machine is slow and not stuck.
 */
export class MemoryAdmission {
  readonly #budget: number;
  readonly #overcommit: number;
  readonly #available: () => number;
  #inFlight = 0;
  #promised = 0;

  constructor(options: AdmissionOptions = {}) {
    this.#available = options.available ?? memoryAvailable;
    this.#budget = options.budget ?? this.#available() * 0.85;
    this.#overcommit = options.overcommit ?? 2;
  }

  /** @param limit bytes of its sandbox */
  admits(limit: number): boolean {
    if (this.#inFlight === 0) return true;
    return this.#promised + limit <= this.#budget * this.#overcommit && this.#available() >= limit;
  }

  enter(limit: number): void {
    this.#inFlight++;
    this.#promised += limit;
  }

  leave(limit: number): void {
    this.#inFlight--;
    this.#promised -= limit;
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
