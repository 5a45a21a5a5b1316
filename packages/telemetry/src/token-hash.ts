/**
 * The hash by which a record vouches for a whole prompt. Two 32-bit lanes of murmur3's body with different constants:
 * it can be continued from any position, so that checking a prompt which extends another costs only the new tokens.
 * It detects damage and mistaken grafts; it is no protection against somebody who wants a collision.
 */
export interface TokenHashState {
  lane0: number;
  lane1: number;
  length: number;
}

export const EMPTY_TOKEN_HASH: Readonly<TokenHashState> = { lane0: 0x2545f491, lane1: 0x1b873593, length: 0 };

/** One id further, lane 0. Exposed so that a hot loop can keep the state of every position in typed arrays. */
export function stepLane0(lane: number, id: number): number {
  let k = Math.imul(id, 0xcc9e2d51);
  k = Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  const h = lane ^ k;
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

export function stepLane1(lane: number, id: number): number {
  let k = Math.imul(id, 0x85ebca6b);
  k = Math.imul((k << 16) | (k >>> 16), 0xc2b2ae35);
  const h = lane ^ k;
  return (Math.imul((h << 17) | (h >>> 15), 9) + 0x9e3779b1) | 0;
}

export function extendTokenHash(state: Readonly<TokenHashState>, ids: Int32Array): TokenHashState {
  let { lane0, lane1 } = state;
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]!;
    lane0 = stepLane0(lane0, id);
    lane1 = stepLane1(lane1, id);
  }
  return { lane0, lane1, length: state.length + ids.length };
}

const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');

/** 16 hexadecimal digits and the length, such as `1f0c…-2048`. */
export function finishTokenHash(state: Readonly<TokenHashState>): string {
  return `${hex(state.lane0)}${hex(state.lane1)}-${state.length}`;
}

/** Hash of a whole prompt, as `call.prompt` carries it. */
export function hashTokens(ids: Int32Array): string {
  return finishTokenHash(extendTokenHash(EMPTY_TOKEN_HASH, ids));
}
