import { toPlainError } from '@treeward/base';
import type { FaultKind, RolloutResult } from './types.js';

/** Which room an error code belongs to; the kind decides whether it counts, is retried or is left out (types.ts). */
const KIND_BY_PREFIX: readonly (readonly [string, FaultKind])[] = [
  ['TASK_E', 'task'],
  ['FILE_E', 'task'],
  ['HARNESS_E', 'harness'],
  ['SANDBOX_E', 'sandbox'],
  ['ENGINE_E', 'engine'],
  ['GATEWAY_E', 'gateway'],
  ['RPC_E', 'gateway'],
  ['VERIFIER_E', 'verifier'],
];

export function faultOf(error: unknown, signal?: AbortSignal): NonNullable<RolloutResult['fault']> {
  const { code, message } = toPlainError(error);
  if (signal?.aborted)
    return { kind: 'cancelled', code: 'ROLLOUT_E_CANCELLED', message: 'the rollout was cancelled' };
  // An error nobody foresaw is a defect of ours, so of the machinery, never of the policy.
  const kind = KIND_BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'sandbox';
  return { kind, code, message };
}
