import { TreewardError } from '@treeward/base';
import type { EndpointSummary } from '@treeward/gateway';
import type { RunResult, Sandbox } from '@treeward/sandbox';
import type { ModelHealth, RolloutResult, RolloutSpec } from './types.js';

/** A turn of a harness may take several model calls: retries, titles, sub-agents. */
export const MAX_CALLS_PER_TURN = 3;

type Fault = NonNullable<RolloutResult['fault']>;

/**
 * The wall clock goes on while a harness waits for a model that is away. Who ran out of time then did not by its own doing.
 * @param before `awayMs` at the rollout's start
 * @throws TreewardError ENGINE_E_AWAY
 */
export async function assertModelWasThere(
  model: ModelHealth,
  before: number,
  pending: () => Promise<number>,
): Promise<void> {
  const away = Math.round(model.awayMs() - before);
  if (away > 0) {
    throw new TreewardError('ENGINE_E_AWAY', `time ran out, and for ${away} ms of it the model was away`);
  }
  if ((await pending()) > 0 && !(await model.answers())) {
    throw new TreewardError('ENGINE_E_AWAY', 'time ran out on a call to an engine that does not answer');
  }
}

/** Which limit of ours the agent ran into, if any: its own doing, so what it left is judged, and it is counted apart. */
export function exceededLimit(
  { limits }: RolloutSpec,
  run: RunResult,
  summary: EndpointSummary,
  outOfMemory: boolean,
): Fault | null {
  if (run.timedOut) {
    return {
      kind: 'timeout',
      code: 'ROLLOUT_E_WALL',
      message: `the harness ran into its limit of ${limits.wallMs} ms`,
    };
  }
  const policy = (code: string, message: string): Fault => ({ kind: 'policy', code, message });
  if (summary.sampledTokens >= limits.maxTokens) {
    return policy('POLICY_E_TOKENS', `all ${limits.maxTokens} tokens of the rollout were sampled`);
  }
  const maxCalls = limits.maxTurns * MAX_CALLS_PER_TURN;
  if (summary.calls > maxCalls)
    return policy('POLICY_E_CALLS', `more than ${maxCalls} model calls were made`);
  if (outOfMemory) return policy('POLICY_E_MEMORY', 'something was killed by the memory limit');
  return null;
}

/**
 * A sandbox that died of its own memory limit was killed by what ran in it, not lost by us; but where the model was never
 * called, that was the harness alone.
 */
export async function blameMemory(
  error: unknown,
  sandbox: Sandbox,
  calls: () => Promise<number>,
): Promise<never> {
  const died = TreewardError.isInstance(error) && error.code === 'SANDBOX_E_LOST';
  if (!died || !(await sandbox.outOfMemory())) throw error;
  const code = (await calls()) > 0 ? 'POLICY_E_MEMORY' : 'HARNESS_E_MEMORY';
  throw new TreewardError(code, 'the sandbox died of its memory limit', { cause: error });
}

/** What the agent left, for the grader. A tree that cannot be copied (too large, too deep) is the agent's doing. */
export async function collectWorkspace(
  sandbox: Sandbox,
  directory: string,
): Promise<{ fault: Fault & { kind: 'policy' } } | { directory: string }> {
  try {
    await sandbox.exportWorkspace(directory);
    return { directory };
  } catch (error) {
    if (!TreewardError.isInstance(error) || error.code !== 'SANDBOX_E_TREE') throw error;
    return { fault: { kind: 'policy', code: 'POLICY_E_WORKSPACE', message: error.message } };
  }
}
