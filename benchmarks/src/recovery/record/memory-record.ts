import type { RecordEvent, RecordWriter, Span } from '@treeward/telemetry';
import type { RecordInput } from '@treeward/tree-recovery';

/** A record in memory: what `RecordWriter` would have written, on a virtual clock. */
export class MemoryRecord implements Pick<RecordWriter, 'append' | 'tokens' | 'logprobs'> {
  readonly events: RecordEvent[] = [];
  readonly #now: () => number;
  #words = new Int32Array(4096);
  #count = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  append(event: RecordEvent): void {
    this.events.push('time' in event ? { ...event, time: this.#now() } : event);
  }

  tokens(ids: Int32Array): Span {
    const span = { offset: 4 * this.#count, count: ids.length };
    const end = this.#count + ids.length;
    if (end > this.#words.length) {
      const grown = new Int32Array(2 * end);
      grown.set(this.#words);
      this.#words = grown;
    }
    this.#words.set(ids, this.#count);
    this.#count = end;
    return span;
  }

  logprobs(values: Float32Array): Span {
    return this.tokens(new Int32Array(values.buffer, values.byteOffset, values.length));
  }

  /** The ids of a span; null outside of what was written. */
  read(span: Span): Int32Array | null {
    const start = span.offset / 4;
    return start + span.count > this.#count ? null : this.#words.slice(start, start + span.count);
  }

  /** `events` instead of the recorded ones: what a fault made of them. */
  input(events: readonly RecordEvent[] = this.events): RecordInput {
    return {
      events: [...events],
      issues: [],
      tokens: (span) => this.read(span),
      logprobs: (span) => {
        const bits = this.read(span);
        return bits && new Float32Array(bits.buffer, bits.byteOffset, bits.length);
      },
    };
  }
}
