import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LlamaContextSequence } from 'node-llama-cpp';
import type { Slot } from './slot-pool.js';

/** Fewer tokens are evaluated anew: below this a copy (about 1.5 ms for the embedded model) gains nothing. */
const WORTH_COPYING = 24;

/** Memory rather than disk, where there is such a place. */
const DIRECTORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export function commonPrefix(a: ArrayLike<number>, b: ArrayLike<number>, limit: number): number {
  const end = Math.min(a.length, b.length, limit);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/**
 * Gives `slot` the keys and values that another sequence already has of `prompt` (a tool manifest, the task text of a group), if that
 * saves enough. llama.cpp's own `seq_cp` is not among node-llama-cpp's bindings and a llama context with separate streams would copy as well;
 * a sequence's state through a file in memory is, and costs a fifteenth of evaluating it. The numbers are the same bits.
 *
 * @returns how many tokens at the start of `prompt` the slot now holds; null when nothing was worth copying
 */
export async function copyPrefix(
  slot: Slot<LlamaContextSequence>,
  others: readonly Slot<LlamaContextSequence>[],
  prompt: Int32Array,
  own: number,
): Promise<number | null> {
  // The last token is always evaluated: its logits are wanted.
  const limit = prompt.length - 1;
  let donor: Slot<LlamaContextSequence> | null = null;
  let best = own + WORTH_COPYING - 1;
  for (const other of others) {
    const length = other === slot ? 0 : commonPrefix(other.cached, prompt, limit);
    if (length > best) [donor, best] = [other, length];
  }
  if (!donor) return null;
  const file = join(DIRECTORY, `treeward-kv-${process.pid}-${randomUUID()}`);
  try {
    await donor.sequence.saveStateToFile(file);
    await slot.sequence.loadStateFromFile(file, { acceptRisk: true });
  } finally {
    await rm(file, { force: true });
  }
  // The donor went on, or over to another prompt, since it was looked at: what counts is what came with the state.
  const held = slot.sequence.contextTokens;
  slot.cached = [...held];
  return commonPrefix(held, prompt, limit);
}
