/** Typed arrays that grow by doubling; `view` is what has been written so far. */
export class TokenStore {
  #ids = new Int32Array(1024);
  #logprobs = new Float32Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Appends ids; `logprobs` null where they were not sampled (NaN). Returns the position of the first. */
  push(ids: Int32Array, logprobs: Float32Array | null): number {
    const start = this.#length;
    const needed = start + ids.length;
    if (needed > this.#ids.length) {
      const capacity = Math.max(needed, 2 * this.#ids.length);
      const grown = new Int32Array(capacity);
      grown.set(this.#ids.subarray(0, start));
      this.#ids = grown;
      const grownLogprobs = new Float32Array(capacity);
      grownLogprobs.set(this.#logprobs.subarray(0, start));
      this.#logprobs = grownLogprobs;
    }
    this.#ids.set(ids, start);
    if (logprobs) this.#logprobs.set(logprobs, start);
    else this.#logprobs.fill(Number.NaN, start, needed);
    this.#length = needed;
    return start;
  }

  /** Valid until the next `push`. */
  get ids(): Int32Array {
    return this.#ids;
  }

  get logprobs(): Float32Array {
    return this.#logprobs;
  }
}
