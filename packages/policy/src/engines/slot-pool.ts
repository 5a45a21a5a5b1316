/** One llama sequence and what its key-value cache holds. */
export interface Slot<S> {
  readonly sequence: S;
  /** Token ids whose keys and values are cached, from position 0. Emptied by the user of the slot when unsure. */
  cached: number[];
  /** Who used it last. */
  tag: string | null;
  lastUse: number;
}

interface Waiter<S> {
  tag: string;
  accept: (slot: Slot<S>) => void;
}

/**
 * Hands out sequences, first come first served. A tag gets the slot it used last if that is free (its conversation only
 * grows, so nearly all of it is cached); otherwise one never used, otherwise the one idle for longest.
 */
export class SlotPool<S> {
  /** All of them, free or not. */
  readonly slots: readonly Slot<S>[];
  readonly #free: Slot<S>[];
  readonly #waiting: Waiter<S>[] = [];
  #clock = 0;

  constructor(sequences: readonly S[]) {
    this.slots = sequences.map((sequence) => ({ sequence, cached: [], tag: null, lastUse: 0 }));
    this.#free = [...this.slots];
  }

  /** Resolves to null when `signal` aborts before a slot is free. */
  acquire(tag: string, signal: AbortSignal): Promise<Slot<S> | null> {
    if (signal.aborted) return Promise.resolve(null);
    const slot = this.#pick(tag);
    if (slot) return Promise.resolve(slot);
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        resolve(null);
      };
      const waiter: Waiter<S> = {
        tag,
        accept: (granted) => {
          signal.removeEventListener('abort', onAbort);
          resolve(granted);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(waiter);
    });
  }

  release(slot: Slot<S>): void {
    slot.lastUse = ++this.#clock;
    this.#free.push(slot);
    const waiter = this.#waiting.shift();
    if (waiter) waiter.accept(this.#pick(waiter.tag)!);
  }

  #pick(tag: string): Slot<S> | undefined {
    const [best] = this.#free.toSorted(
      (a, b) => Number(b.tag === tag) - Number(a.tag === tag) || a.lastUse - b.lastUse,
    );
    if (!best) return undefined;
    this.#free.splice(this.#free.indexOf(best), 1);
    best.tag = tag;
    return best;
  }
}
