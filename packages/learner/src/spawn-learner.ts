import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { fromPlainError, TreewardError, type PlainError } from '@treeward/base';
import { RemoteLearner } from './remote-learner.js';
import type { TfjsLearnerOptions } from './tfjs-learner.js';

/** What a learner process is started with. JSON on its command line. */
export interface LearnerProcessConfig extends TfjsLearnerOptions {
  /** A saved state to continue from (weights, optimizer, version), before the process answers anyone. */
  resume?: string;
}

/** The built entry of the learner's process (from sources and from `dist` alike). */
export const learnerEntry = fileURLToPath(new URL('../dist/learner-main.js', import.meta.url));

export interface SpawnedLearner {
  learner: RemoteLearner;
  child: ChildProcess;
}

/**
 * Starts a learner process and waits until it answers. It ends by itself when this process does.
 *
 * @param options.scratch folder for batches on their way
 * @throws the child's own error (LEARNER_E_…), or LEARNER_E_START when it died without saying why
 */
export async function spawnLearner(
  socketPath: string,
  config: LearnerProcessConfig,
  options: { scratch: string },
): Promise<SpawnedLearner> {
  // Flags such as --conditions belong to the caller's way of running sources; the child runs built code.
  const child = fork(learnerEntry, [socketPath, JSON.stringify(config)], { execArgv: [] });
  await new Promise<void>((resolve, reject) => {
    const died = (code: number | null, signal: string | null): void =>
      reject(
        new TreewardError('LEARNER_E_START', `the learner's process ended at its start (${signal ?? code})`),
      );
    child.once('exit', died);
    child.once('error', reject);
    child.on('message', (message: { type: string; error?: PlainError }) => {
      child.off('exit', died);
      if (message.type === 'failed') reject(fromPlainError(message.error!));
      else resolve();
    });
  });
  return { learner: new RemoteLearner(socketPath, options), child };
}
