/**
 * What a process waits for: virtual milliseconds, other processes to end, or real work during which virtual time stands
 * still and nobody else runs.
 */
export type Wait = { sleep: number } | { join: readonly Task<unknown>[] } | { work: () => Promise<void> };
/** A process of the simulated world, written as a generator that yields what it waits for. */
export type Process<T> = Generator<Wait, T, void>;

export interface Task<T> {
  done: boolean;
  result?: T;
}

interface Entry {
  time: number;
  order: number;
  resume: () => void;
}

/**
 * Virtual time: processes run one at a time, always the one whose time has come first; of equal times the one that began
 * to wait first. So the same seed gives the same interleaving of concurrent agents on every machine.
 */
export class Clock {
  #now: number;
  #order = 0;
  readonly #heap: Entry[] = [];
  #work: (() => Promise<void>) | null = null;

  constructor(start: number) {
    this.#now = start;
  }

  get now(): number {
    return this.#now;
  }

  /** Begins in `delay` milliseconds. */
  start<T>(process: Process<T>, delay = 0): Task<T> {
    const task: Task<T> & { waiters: (() => void)[] } = { done: false, waiters: [] };
    const resume = (): void => {
      for (;;) {
        const step = process.next();
        if (step.done) {
          task.done = true;
          task.result = step.value;
          for (const wake of task.waiters) this.#at(this.#now, wake);
          return;
        }
        if ('sleep' in step.value) {
          this.#at(this.#now + Math.max(0, step.value.sleep), resume);
          return;
        }
        if ('work' in step.value) {
          const { work } = step.value;
          this.#work = async () => {
            await work();
            resume();
          };
          return;
        }
        const open = step.value.join.filter(({ done }) => !done) as (Task<unknown> & {
          waiters: (() => void)[];
        })[];
        if (open.length === 0) continue;
        let left = open.length;
        for (const other of open) {
          other.waiters.push(() => {
            if (--left === 0) resume();
          });
        }
        return;
      }
    };
    this.#at(this.#now + delay, resume);
    return task;
  }

  async run(): Promise<void> {
    for (let entry = this.#pop(); entry; entry = this.#pop()) {
      this.#now = entry.time;
      entry.resume();
      while (this.#work) {
        const work = this.#work;
        this.#work = null;
        await work();
      }
    }
  }

  #at(time: number, resume: () => void): void {
    const heap = this.#heap;
    heap.push({ time, order: this.#order++, resume });
    for (let i = heap.length - 1; i > 0;) {
      const up = (i - 1) >> 1;
      if (!before(heap[i]!, heap[up]!)) break;
      [heap[i], heap[up]] = [heap[up]!, heap[i]!];
      i = up;
    }
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top && last && top !== last) {
      heap[0] = last;
      for (let i = 0; ;) {
        let least = i;
        for (const child of [2 * i + 1, 2 * i + 2]) {
          if (child < heap.length && before(heap[child]!, heap[least]!)) least = child;
        }
        if (least === i) break;
        [heap[i], heap[least]] = [heap[least]!, heap[i]!];
        i = least;
      }
    }
    return top;
  }
}

const before = (a: Entry, b: Entry): boolean => a.time < b.time || (a.time === b.time && a.order < b.order);
