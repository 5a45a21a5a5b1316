import type { Message } from '@treeward/messages';

/** Of a request's messages those that a template shows. */
export interface Shown {
  /** The head's key, then those of the messages. */
  keys: readonly string[];
  /** Index in the request of each of the messages: one less than there are keys. */
  positions: readonly number[];
}

/** Lists of shown messages, one after the other; each mostly repeats the one before and then costs what is new in it. */
export class ShownKeys {
  /** Of all messages of the last list. */
  #all: readonly string[] = [];
  /** How many messages of `#all` are shown before each. */
  readonly #before: number[] = [];
  readonly #keys: string[] = [''];
  readonly #positions: number[] = [];

  /** How many leading messages are those of the last list. */
  known(keys: readonly string[]): number {
    let at = 0;
    while (at < this.#all.length && at < keys.length && this.#all[at] === keys[at]) at++;
    return at;
  }

  /**
   * What it returns holds until the next call.
   * @param shows by key, of every message that is no turn of the model; those are always shown
   */
  of(
    head: string,
    messages: readonly Message[],
    keys: readonly string[],
    shows: ReadonlyMap<string, boolean>,
  ): Shown {
    let at = this.known(keys);
    // The last one that is known may have others behind it.
    if (at < this.#before.length) this.#positions.length = this.#before[at]!;
    this.#before.length = at;
    this.#keys.length = 1 + this.#positions.length;
    this.#keys[0] = head;
    for (; at < messages.length; at++) {
      this.#before.push(this.#positions.length);
      if (messages[at]!.role !== 'assistant' && !shows.get(keys[at]!)) continue;
      this.#positions.push(at);
      this.#keys.push(keys[at]!);
    }
    this.#all = keys;
    return { keys: this.#keys, positions: this.#positions };
  }
}
