/**
 * The end of a call from outside. What an `AbortController` does, at a hundredth of its cost: every call has one, hardly
 * any is used.
 */
export class CallStop {
  #reason: Error | null = null;
  readonly #listeners = new Set<(reason: Error) => void>();

  /** Why it was stopped; null while it was not. */
  get reason(): Error | null {
    return this.#reason;
  }

  /** The first reason counts. */
  stop(reason: Error): void {
    if (this.#reason) return;
    this.#reason = reason;
    for (const listener of this.#listeners) listener(reason);
    this.#listeners.clear();
  }

  /** Calls `listener` once it is stopped, at once if it is already. Returns how to take that back. */
  onStop(listener: (reason: Error) => void): () => void {
    if (this.#reason) listener(this.#reason);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
