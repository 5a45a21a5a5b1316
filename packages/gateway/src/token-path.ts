import { EMPTY_TOKEN_HASH, extendTokenHash, type TokenHashState } from '@treeward/telemetry';

/**
 * The ids of a conversation as a list linked backwards, one link per head, message or sampled reply. Conversations
 * that share a beginning share its links, and rollouts share the arrays of texts that they have in common: a call costs
 * the memory of what it adds.
 */
export interface TokenPath {
  readonly before: TokenPath | null;
  readonly ids: Int32Array;
  /** Links up to and with this one. */
  readonly depth: number;
  /** Ids up to and with this link. */
  readonly end: number;
  readonly hash: Readonly<TokenHashState>;
}

export function extendPath(before: TokenPath | null, ids: Int32Array): TokenPath {
  return {
    before,
    ids,
    depth: (before?.depth ?? 0) + 1,
    end: (before?.end ?? 0) + ids.length,
    hash: extendTokenHash(before?.hash ?? EMPTY_TOKEN_HASH, ids),
  };
}

/** The link at `depth`, counted from 1. @throws RangeError when the path is shorter */
export function pathAt(path: TokenPath, depth: number): TokenPath {
  let link: TokenPath | null = path;
  while (link && link.depth > depth) link = link.before;
  if (link?.depth !== depth) throw new RangeError(`a path of ${path.depth} links has none at ${depth}`);
  return link;
}

/** All ids of the path, then `tail`. */
export function pathIds(path: TokenPath, tail: Int32Array): Int32Array {
  const out = new Int32Array(path.end + tail.length);
  out.set(tail, path.end);
  for (let link: TokenPath | null = path; link; link = link.before) {
    const { ids } = link;
    const start = link.end - ids.length;
    // Most links are short, and a call of `set` costs more than they do.
    if (ids.length > 64) out.set(ids, start);
    else for (let i = 0; i < ids.length; i++) out[start + i] = ids[i]!;
  }
  return out;
}
