import { createHash } from 'node:crypto';
import { canonicalKey, toolManifestHash, type Message, type ToolSpec } from '@treeward/messages';

/** Characters up to which a key is kept as it is: hashing costs more than these take room. */
const SHORT = 256;
const DIGEST_MARK = '#';

const digest = (text: string): string => createHash('sha256').update(text).digest('base64');

/**
 * What `canonicalKey` tells apart, in at most 256 characters: the indexes of a rollout hold every key they have seen, and
 * a thousand rollouts would otherwise each hold the system prompt they share. Messages must not change afterwards.
 */
export function messageKey(message: Message): string {
  let key = keys.get(message);
  if (key === undefined) {
    key = canonicalKey(message);
    // Every canonical key begins with a letter, so that none reads like a digest.
    if (key.length > SHORT) key = DIGEST_MARK + digest(key);
    keys.set(message, key);
  }
  return key;
}

/** The record's index and the conversation's ask for the same objects. */
const keys = new WeakMap<Message, string>();

/** Manifests whose hash is remembered; a run sees a handful. */
const MANIFESTS = 256;
const manifests = new Map<string, string>();

/** `toolManifestHash`, whose sorting of every schema costs more than all the rest of a call, by the manifest's own text. */
export function manifestHash(tools: readonly ToolSpec[]): string {
  const text = digest(JSON.stringify(tools));
  let hash = manifests.get(text);
  if (hash === undefined) {
    hash = toolManifestHash(tools);
    if (manifests.size >= MANIFESTS) manifests.clear();
    manifests.set(text, hash);
  }
  return hash;
}
