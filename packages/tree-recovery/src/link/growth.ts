import { replyKey } from '../message-tree.js';
import type { LinkCall } from './link-call.js';

/** Attempts at one turn that are compared. */
const ATTEMPTS = 64;

/** What grew out of each call, kept while calls are attached in their order. */
export class Growth {
  readonly #calls: readonly LinkCall[];
  readonly #children: number[][] = [];

  constructor(calls: readonly LinkCall[]) {
    this.#calls = calls;
  }

  add({ at, attachment }: LinkCall): void {
    if ('of' in attachment) (this.#children[attachment.of] ??= []).push(at);
  }

  /** Calls that go on from that one. */
  extendedBy(at: number): readonly number[] {
    return this.#children[at] ?? [];
  }

  /** A call and all its repetitions. */
  attempts(first: number): number[] {
    const all = [first];
    for (const attempt of all) {
      const again = this.extendedBy(attempt).filter(
        (later) => this.#calls[later]!.attachment.kind === 'repeats',
      );
      if (all.length < ATTEMPTS) all.push(...again);
    }
    return all;
  }

  /** The call that this one, if it is a repetition, repeats. */
  firstAttempt(at: number): number {
    for (let first = at; ;) {
      const { attachment } = this.#calls[first]!;
      if (attachment.kind !== 'repeats') return first;
      first = attachment.of;
    }
  }

  /**
   * Of attempts at one turn that read the same, the one that the harness took for all anybody can tell: of those that
   * arrived before `call` the last to finish.
   */
  takenTwin(at: number, call: LinkCall): number {
    const attempts = this.attempts(this.firstAttempt(at));
    const key = (one: LinkCall): string => replyKey(one.entry.sampled!.reply.parts);
    const own = this.#calls[at]!;
    if (attempts.length === 1 || !own.sampled) return at;
    let taken = own;
    for (const other of attempts) {
      const twin = this.#calls[other]!;
      if (!twin.sampled || !twin.delivered || twin.finish > call.start || key(twin) !== key(own)) continue;
      if (!taken.delivered || twin.finish > taken.finish) taken = twin;
    }
    return taken.at;
  }

  /** Does any history hold its reply, or did it start an agent? */
  goesOn(at: number): boolean {
    return this.extendedBy(at).some((later) => {
      const { kind } = this.#calls[later]!.attachment;
      return kind === 'extends' || kind === 'spawned';
    });
  }

  /** Did anything but agents grow out of it? */
  isContinued(at: number): boolean {
    return this.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind !== 'spawned');
  }

  /** Tool calls of that reply whose results no history holds yet. */
  isOpen(at: number): boolean {
    return !this.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind === 'extends');
  }

  /** A summary that stands in a history: a request that quotes it asks for its next version. */
  isTakenUp(at: number): boolean {
    return this.extendedBy(at).some((later) => this.#calls[later]!.attachment.kind === 'compacted');
  }
}
