/** Longest that a reply waits for the rollout to look at the workspace. */
export const HOLD_MS = 250;

/**
 * Tells the rollout of every call's arrival and holds the reply until the rollout has looked at the workspace: what the
 * calls so far did is then told apart from what this reply causes.
 */
export class Arrivals {
  #calls = 0;
  #seen = -1;
  #closed = false;
  readonly #waiting = new Set<() => void>();

  arrived(call: number): void {
    this.#calls = Math.max(this.#calls, call + 1);
    this.#wake();
  }

  /** The rollout has looked since the arrival of `call`, so also since all earlier ones. */
  acknowledge(call: number): void {
    this.#seen = Math.max(this.#seen, call);
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** Call number `after` once it has arrived (or a later one, so that nobody queues up); null when closed. */
  async next(after: number): Promise<number | null> {
    while (this.#calls <= after && !this.#closed) await this.#change();
    return this.#calls > after ? this.#calls - 1 : null;
  }

  /** Resolves when `call` was acknowledged, or after 250 ms: a slow witness costs evidence, not the rollout. */
  async held(call: number): Promise<void> {
    const end = Date.now() + HOLD_MS;
    while (this.#seen < call && !this.#closed && Date.now() < end) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, Math.max(0, end - Date.now()));
      });
      await Promise.race([this.#change(), late]);
      clearTimeout(timer);
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
    });
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
