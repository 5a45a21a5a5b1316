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

/** The ids of a path, kept so that a path that goes on from it need not be walked to its beginning. */
export interface KnownIds {
  path: TokenPath;
  /** Those of the path, and perhaps more behind them. */
  ids: Int32Array;
}

/** All ids of the path, then `tail`. What the path has in common with `known` is copied in one piece. */
export function pathIds(path: TokenPath, tail: Int32Array, known: KnownIds | null = null): Int32Array {
  const out = new Int32Array(path.end + tail.length);
  out.set(tail, path.end);
  const depth = known?.path.depth ?? 0;
  for (let link: TokenPath | null = path; link; link = link.before) {
    if (link.depth === depth && link === known!.path) {
      out.set(known!.ids.subarray(0, link.end));
      break;
    }
    const { ids } = link;
    const start = link.end - ids.length;
    // Most links are short, and a call of `set` costs more than they do.
    if (ids.length > 64) out.set(ids, start);
    else for (let i = 0; i < ids.length; i++) out[start + i] = ids[i]!;
  }
  return out;
}
