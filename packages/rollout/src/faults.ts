import { toPlainError } from '@treeward/base';
import type { RolloutResult } from './types.js';

export type FaultKind =
  'task' | 'policy' | 'harness' | 'sandbox' | 'engine' | 'gateway' | 'verifier' | 'timeout' | 'cancelled';

export interface FaultRule {
  /** `infrastructure`: ours, nobody's doing in the rollout. */
  class: 'infrastructure' | 'input' | 'policy' | 'operator';
  /**
   * `retry`: run again, elsewhere if there is an elsewhere; when that is used up, as `exclude`. `exclude`: no reward, so
   * outside baseline and loss. `own`: the policy's doing: judged by what it left, or worth 0, and counted apart.
   */
  then: 'retry' | 'exclude' | 'own';
  /** Beginnings of the error codes that mean it. */
  codes: readonly string[];
  examples: string;
}

/** Every failure has a kind, and every kind one treatment. A fault of ours is never a reward of 0. */
export const FAULTS: Readonly<Record<FaultKind, FaultRule>> = {
  task: {
    class: 'input',
    then: 'exclude',
    codes: ['TASK_E', 'FILE_E'],
    examples: 'no checker, unreadable task files',
  },
  policy: {
    class: 'policy',
    then: 'own',
    codes: ['POLICY_E'],
    examples: 'broke or forged the checker, filled its memory, turn or token limit',
  },
  timeout: { class: 'policy', then: 'own', codes: ['ROLLOUT_E_WALL'], examples: 'wall-clock limit' },
  harness: {
    class: 'input',
    then: 'exclude',
    codes: ['HARNESS_E'],
    examples: 'not installed, never called the model',
  },
  sandbox: {
    class: 'infrastructure',
    then: 'retry',
    codes: ['SANDBOX_E'],
    examples: 'did not start, ended under us',
  },
  engine: {
    class: 'infrastructure',
    then: 'retry',
    codes: ['ENGINE_E'],
    examples: 'died and did not come back',
  },
  gateway: {
    class: 'infrastructure',
    then: 'retry',
    codes: ['GATEWAY_E', 'RPC_E'],
    examples: 'restarted, connection lost',
  },
  verifier: {
    class: 'infrastructure',
    then: 'retry',
    codes: ['VERIFIER_E'],
    examples: 'fails or hangs on the untouched workspace too, prints no number',
  },
  cancelled: {
    class: 'operator',
    then: 'exclude',
    codes: ['ROLLOUT_E_CANCELLED'],
    examples: 'Ctrl-C, shutdown',
  },
};

const kinds = Object.entries(FAULTS) as [FaultKind, FaultRule][];

export const INFRASTRUCTURE: ReadonlySet<FaultKind> = new Set(
  kinds.filter(([, rule]) => rule.class === 'infrastructure').map(([kind]) => kind),
);

export function faultOf(error: unknown, signal?: AbortSignal): NonNullable<RolloutResult['fault']> {
  const { code, message } = toPlainError(error);
  if (signal?.aborted)
    return { kind: 'cancelled', code: 'ROLLOUT_E_CANCELLED', message: 'the rollout was cancelled' };
  // An error nobody foresaw is a defect of ours, so of the machinery, never of the policy.
  const kind =
    kinds.find(([, { codes }]) => codes.some((prefix) => code.startsWith(prefix)))?.[0] ?? 'sandbox';
  return { kind, code, message };
}
