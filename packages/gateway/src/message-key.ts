import { hash } from 'node:crypto';
import {
  canonicalKey,
  toolManifestHash,
  type Message,
  type ReplyPart,
  type ToolSpec,
} from '@treeward/messages';
import { sameJson } from './same-json.js';

/** Characters up to which a key is kept as it is: hashing costs more than these take room. */
const SHORT = 256;
const DIGEST_MARK = '#';

/**
 * What `canonicalKey` tells apart, in at most 256 characters: the indexes of a rollout hold every key they have seen, and
 * a thousand rollouts would otherwise each hold the system prompt they share.
 */
export function messageKey(message: Message): string {
  const key = canonicalKey(message);
  // Every canonical key begins with a letter, so that none reads like a digest.
  return key.length > SHORT ? DIGEST_MARK + hash('sha256', key, 'base64') : key;
}

/**
 * Keys of lists that mostly repeat the list before: a message that stands where an equal one stood has its key without
 * making it again. Long messages are not kept for that.
 */
export class MessageKeys {
  #messages: readonly (Message | null)[] = [];
  #keys: readonly string[] = [];

  /** The messages must not change afterwards. */
  of(messages: readonly Message[]): readonly string[] {
    const known = this.#messages;
    const keys: string[] = [];
    const kept: (Message | null)[] = [];
    for (let i = 0; i < messages.length; i++) {
      const message = messages[i]!;
      const before = known[i];
      if (before && sameMessage(message, before)) {
        keys.push(this.#keys[i]!);
        kept.push(before); // the older object: the newer one may die young
        continue;
      }
      const key = messageKey(message);
      keys.push(key);
      kept.push(key.startsWith(DIGEST_MARK) ? null : message);
    }
    this.#messages = kept;
    this.#keys = keys;
    return keys;
  }
}

/** Whether two messages are equal in all that a key tells; it may say no to some that are. */
export function sameMessage(a: Message, b: Message): boolean {
  switch (a.role) {
    case 'assistant':
      return b.role === 'assistant' && sameParts(a.parts, b.parts);
    case 'tool':
      return b.role === 'tool' && a.text === b.text && (a.isError ?? false) === (b.isError ?? false);
    default:
      return a.role === b.role && a.text === b.text;
  }
}

function sameParts(a: readonly ReplyPart[], b: readonly ReplyPart[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [one, other] = [a[i]!, b[i]!];
    if (one.type === 'text') {
      if (other.type !== 'text' || one.text !== other.text) return false;
    } else if (
      other.type !== 'tool_call' ||
      one.name !== other.name ||
      !sameJson(one.arguments, other.arguments)
    ) {
      return false;
    }
  }
  return true;
}

/** Manifests whose hash is remembered; a run sees a handful. */
const MANIFESTS = 16;
/** Newest first. */
const manifests: { tools: readonly ToolSpec[]; hash: string }[] = [];

/** `toolManifestHash`, whose sorting of every schema costs more than all the rest of a call; known manifests are compared. */
export function manifestHash(tools: readonly ToolSpec[]): string {
  const at = manifests.findIndex((known) => sameJson(tools, known.tools));
  const known = at < 0 ? { tools, hash: toolManifestHash(tools) } : manifests[at]!;
  if (at === 0) return known.hash;
  if (at > 0) manifests.splice(at, 1);
  manifests.unshift(known);
  manifests.length = Math.min(manifests.length, MANIFESTS);
  return known.hash;
}
