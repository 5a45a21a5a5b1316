import { closeSync, fstatSync, write, writeSync } from 'node:fs';

/** Bytes that are written on the calling thread: the kernel copies them in less time than it takes to wake another. */
const SMALL = 64 << 10;
/** A write of so little that takes longer found a disk that is behind. */
const SLOW_MS = 5;
/** For how long a slow disk is then left to the thread pool. */
const AWAY_MS = 1000;

/**
 * Appends to an open file. Small pieces go to the kernel at once (about 3 µs; handing them to a thread of the pool costs
 * five times that, and a switch on a busy machine); a file that has once been slow, a pipe or a device must not hold up
 * the event loop and is written from the pool.
 */
export class FileAppender {
  readonly #fd: number;
  readonly #regular: boolean;
  #awayUntil = 0;

  constructor(fd: number) {
    this.#fd = fd;
    this.#regular = fstatSync(fd).isFile();
  }

  /** Null when all of it is written; otherwise one append at a time. Throws, or rejects with, what the write failed with. */
  append(bytes: Uint8Array): Promise<void> | null {
    if (!this.#regular || bytes.length > SMALL) return this.#appendOnPool(bytes);
    const start = performance.now();
    if (start < this.#awayUntil) return this.#appendOnPool(bytes);
    for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at);
    const end = performance.now();
    if (end - start > SLOW_MS) this.#awayUntil = end + AWAY_MS;
    return null;
  }

  close(): void {
    closeSync(this.#fd);
  }

  async #appendOnPool(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      at += await new Promise<number>((resolve, reject) => {
        write(this.#fd, bytes, at, bytes.length - at, null, (error, written) =>
          error ? reject(error) : resolve(written),
        );
      });
    }
  }
}
