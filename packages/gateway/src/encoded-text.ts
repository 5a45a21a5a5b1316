import type { Message, ToolSpec } from '@treeward/messages';
import { hashTokens } from '@treeward/telemetry';
import type { Encoder } from './encoder.js';

export interface Head {
  ids: Int32Array;
  /** Equal for manifests that this template shows alike. */
  key: string;
}

/** Heads that are kept: a run sees a handful, and a harness that invents one per call must not fill the memory. */
const HEADS = 1000;
/** Counted on top of each entry's ids: keys, map entries, array headers. */
const ENTRY_COST = 64;

/**
 * Text that many rollouts of a run share (tool manifests, system prompts, task texts) is encoded once, also when several
 * ask for it at the same time. The least recently used entries go when `capacity` ids are held.
 */
export class EncodedText {
  readonly #encoder: Encoder;
  readonly #capacity: number;
  readonly #messages = new Map<string, Int32Array | Promise<Int32Array>>();
  readonly #heads = new Map<string, Head | Promise<Head>>();
  #held = 0;
  #encodings = 0;

  constructor(encoder: Encoder, capacity = 8_000_000) {
    this.#encoder = encoder;
    this.#capacity = capacity;
  }

  /** Texts that were encoded so far, rather than found. */
  get encodings(): number {
    return this.#encodings;
  }

  head(tools: readonly ToolSpec[], manifestHash: string): Head | Promise<Head> {
    const known = this.#heads.get(manifestHash);
    if (known) return known;
    this.#encodings++;
    const made = this.#encoder.head(tools);
    if (this.#heads.size >= HEADS) this.#heads.clear();
    const keep = (ids: Int32Array): Head => {
      const head = { ids, key: `head:${hashTokens(ids)}` };
      this.#heads.set(manifestHash, head);
      return head;
    };
    if (made instanceof Int32Array) return keep(made);
    const coming = made.then(keep);
    this.#heads.set(manifestHash, coming);
    coming.catch(() => this.#heads.delete(manifestHash));
    return coming;
  }

  /** `key` is the message's key: it decides all that a template may show of a message without calls. */
  message(message: Message, key: string): Int32Array | Promise<Int32Array> {
    // An assistant turn may be shown in the order in which its arguments came, which the key does not tell.
    if (message.role === 'assistant') {
      this.#encodings++;
      return this.#encoder.message(message);
    }
    const known = this.#messages.get(key);
    if (known) {
      this.#messages.delete(key);
      this.#messages.set(key, known);
      return known;
    }
    this.#encodings++;
    const made = this.#encoder.message(message);
    const keep = (ids: Int32Array): Int32Array => {
      this.#messages.set(key, ids);
      this.#held += ids.length + ENTRY_COST;
      this.#evict();
      return ids;
    };
    if (made instanceof Int32Array) return keep(made);
    const coming = made.then(keep);
    this.#messages.set(key, coming);
    coming.catch(() => this.#messages.delete(key));
    return coming;
  }

  #evict(): void {
    for (const [key, ids] of this.#messages) {
      if (this.#held <= this.#capacity) break;
      if (!(ids instanceof Int32Array)) continue;
      this.#messages.delete(key);
      this.#held -= ids.length + ENTRY_COST;
    }
  }
}
