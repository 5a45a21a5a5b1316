import { performance } from 'node:perf_hooks';

/** Milliseconds of one turn of the event loop that may go to arriving requests. */
const SLICE_MS = 4;

/**
 * Spreads the work of requests that arrive together over several turns of the event loop: a thousand harnesses that send
 * at once must not silence the streams of the others for as long as it takes to read them all. First come, first served.
 */
export class Pacer {
  readonly #sliceMs: number;
  readonly #waiting: (() => void)[] = [];
  /** When this turn's first work began; null while nothing ran in this turn. */
  #began: number | null = null;

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  /** The result of `work`, run now if this turn has time left and nobody waits. */
  run<T>(work: () => T): T | Promise<T> {
    this.#begin();
    if (this.#waiting.length === 0 && this.#hasTime()) return work();
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(work());
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  }

  #begin(): void {
    if (this.#began !== null) return;
    this.#began = performance.now();
    setImmediate(() => this.#turn());
  }

  #hasTime(): boolean {
    return performance.now() - this.#began! < this.#sliceMs;
  }

  /** At least one per turn; what its continuation does (microtasks) runs before the next turn begins. */
  #turn(): void {
    this.#began = null;
    if (this.#waiting.length === 0) return;
    this.#begin();
    do this.#waiting.shift()!();
    while (this.#waiting.length > 0 && this.#hasTime());
  }
}
