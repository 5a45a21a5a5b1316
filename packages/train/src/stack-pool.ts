import type { RunFolder } from '@treeward/base';
import {
  RolloutPool,
  SandboxGrader,
  StateGrader,
  type RolloutDeps,
  type RolloutPoolOptions,
} from '@treeward/rollout';
import type { SandboxProvider } from '@treeward/sandbox';
import type { Stack } from './processes/stack.js';

/** What rollouts need of a stack's processes; who keeps and judges them is the caller's. */
export const stackDeps = (
  stack: Stack,
  sandboxes: SandboxProvider,
): Pick<RolloutDeps, 'gateway' | 'sandboxes' | 'socketRoot' | 'model'> => ({
  gateway: stack.gateway,
  sandboxes,
  socketRoot: stack.socketRoot,
  model: stack,
});

/** The pool of a run: its folder keeps the rollouts, checkers judge them in sandboxes of the same provider. */
export function stackPool(
  stack: Stack,
  sandboxes: SandboxProvider,
  run: RunFolder,
  { trace, ...options }: RolloutPoolOptions & Pick<RolloutDeps, 'trace'>,
): RolloutPool {
  const grader = new SandboxGrader(sandboxes);
  return new RolloutPool(
    {
      ...stackDeps(stack, sandboxes),
      grader,
      states: new StateGrader(grader),
      folder: (rolloutId) => run.rollout(rolloutId),
      ...(trace !== undefined && { trace }),
    },
    options,
  );
}
