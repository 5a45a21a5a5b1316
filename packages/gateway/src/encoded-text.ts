import { toolManifestHash, type Message, type ToolSpec } from '@treeward/messages';
import type { ChatTemplate } from '@treeward/policy';
import { hashTokens } from '@treeward/telemetry';

export interface Head {
  ids: Int32Array;
  /** Equal for manifests that this template shows alike. */
  key: string;
}

/**
 * Text that many rollouts of a run share (tool manifests, system prompts, task texts) is encoded once. The least
 * recently used entries go when `capacity` ids or characters are held.
 */
export class EncodedText {
  readonly #template: ChatTemplate;
  readonly #capacity: number;
  readonly #messages = new Map<string, Int32Array>();
  readonly #heads = new Map<string, Head>();
  #held = 0;

  constructor(template: ChatTemplate, capacity = 8_000_000) {
    this.#template = template;
    this.#capacity = capacity;
  }

  head(tools: readonly ToolSpec[], manifestHash: string = toolManifestHash(tools)): Head {
    let head = this.#heads.get(manifestHash);
    if (!head) {
      const ids = this.#template.head(tools);
      head = { ids, key: `head:${hashTokens(ids)}` };
      // A run sees a handful of manifests; a harness that invents one per call must not fill the memory.
      if (this.#heads.size >= 1000) this.#heads.clear();
      this.#heads.set(manifestHash, head);
    }
    return head;
  }

  /** `key` is the message's canonical key: it decides all that a template may show of a message without calls. */
  message(message: Message, key: string): Int32Array {
    // An assistant turn may be shown in the order in which its arguments came, which the key does not tell.
    if (message.role === 'assistant') return this.#template.message(message);
    let ids = this.#messages.get(key);
    if (ids) {
      this.#messages.delete(key);
    } else {
      ids = this.#template.message(message);
      this.#held += ids.length + key.length;
    }
    this.#messages.set(key, ids);
    for (const [oldKey, oldIds] of this.#messages) {
      if (this.#held <= this.#capacity) break;
      this.#messages.delete(oldKey);
      this.#held -= oldIds.length + oldKey.length;
    }
    return ids;
  }
}
