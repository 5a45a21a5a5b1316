import { PrefixIndex, type Message } from '@treeward/messages';
import type { Json, MessagesDelta } from '@treeward/telemetry';

/** Messages, replies and schemas came from JSON or hold nothing that JSON cannot. */
const json = (value: unknown): Json => value as Json;

/** Message lists as deltas against the earlier call that shares the most of them. */
export class MessageLog {
  readonly #index: PrefixIndex;

  constructor(index = new PrefixIndex()) {
    this.#index = index;
  }

  /** A log that has seen the same calls. */
  fork(): MessageLog {
    return new MessageLog(this.#index.clone());
  }

  add(call: number, messages: readonly Message[], keys: readonly string[]): MessagesDelta {
    const match = this.#index.find(keys);
    const kept = match?.kept ?? 0;
    this.#index.add(call, keys.slice(kept), match ?? undefined);
    return { parent: match?.call ?? null, kept, appended: messages.slice(kept).map(json) };
  }

  reply(call: number, key: string): void {
    this.#index.addReply(call, key);
  }
}
