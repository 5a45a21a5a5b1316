import type { Json } from '@treeward/telemetry';
import type { RecordedCall } from './collect-calls.js';

/** What was really sampled from, as far as training must know it. */
export interface KnownSampling {
  /** NaN when the record does not say. */
  temperature: number;
  bannedIds: number[];
  /** top-p or top-k cut the distribution: the logprobs are of what remained. */
  truncated: boolean;
}

export function readSampling(sampling: Json | undefined): KnownSampling {
  const fields =
    typeof sampling === 'object' && sampling !== null && !Array.isArray(sampling) ? sampling : {};
  const { temperature, bannedIds, topP, topK } = fields as { [key: string]: Json | undefined };
  return {
    temperature: typeof temperature === 'number' ? temperature : Number.NaN,
    bannedIds: Array.isArray(bannedIds) ? bannedIds.filter((id) => typeof id === 'number') : [],
    truncated: (typeof topP === 'number' && topP < 1) || (typeof topK === 'number' && topK > 0),
  };
}

/** What recovery found out about a call's own tokens. */
export interface CallTokens {
  prompt: 'verified' | 'missing' | 'unknown' | 'mismatch';
  ids: Int32Array | null;
  logprobs: Float32Array | null;
}

/**
 * Why a call's tokens cannot train; null when they do. Decided from the call itself and never from what came of it:
 * whatever a reply may have caused (a client that gave up, a malformed turn, a dead branch) stays in the loss.
 */
export function untrainedReason(entry: RecordedCall, tokens: CallTokens): string | null {
  const { sampled, end } = entry;
  if (entry.conflict) return 'the record contradicts itself about this call';
  if (tokens.prompt === 'missing') return 'no prompt recorded';
  if (tokens.prompt === 'unknown') return 'prompt not recoverable';
  if (tokens.prompt === 'mismatch') return 'prompt hash mismatch';
  if (!sampled) return lostTo(entry) ?? 'nothing sampled';
  if (!tokens.ids) return 'sampled tokens missing';
  if (tokens.ids.length === 0) return lostTo(entry) ?? 'nothing sampled';
  if (!tokens.logprobs || tokens.logprobs.length !== tokens.ids.length) return 'logprobs missing';
  // A logprob above 0 is no logprob; rounding may leave a hair.
  if (!tokens.logprobs.every((value) => Number.isFinite(value) && value < 1e-3)) return 'logprobs not usable';
  if (sampled.policy.version < 0 || sampled.policy.id === '') return 'policy version unknown';
  const { temperature } = readSampling(sampled.sampling);
  if (Number.isNaN(temperature)) return 'sampling unknown';
  if (!(temperature > 0)) return 'sampled greedily';
  if (sampled.finish === 'error') return 'the engine failed';
  if (!end) return 'no call.end: the gateway died during this call';
  return lostTo(entry);
}

/** Losses that the policy did not cause. A client that left did so because of, or after, this very reply. */
function lostTo({ end }: RecordedCall): string | null {
  if (!end || end.delivery === 'complete') return null;
  if (end.cause === 'gateway') return 'reply lost by the gateway';
  if (end.cause === 'engine') return 'reply lost by the engine';
  return null;
}
