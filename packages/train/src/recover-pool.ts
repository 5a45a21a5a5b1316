import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { fromPlainError, WORKER_ARGUMENTS } from '@treeward/base';
import { readTree, type RecoverOutcome, type RecoverTask, type RolloutTree } from '@treeward/tree-recovery';

/** Parsing and recovery are CPU work: they run on Piscina threads of the controller and hand over by file (`tree.bin`). */
export class RecoverPool {
  readonly #pool: Piscina;

  constructor(threads = 2) {
    const entry = fileURLToPath(import.meta.resolve('@treeward/tree-recovery'));
    this.#pool = new Piscina({
      filename: new URL('recover-worker.js', `file://${entry}`).href,
      execArgv: [...WORKER_ARGUMENTS],
      minThreads: 1,
      maxThreads: threads,
      idleTimeout: 30_000,
    });
  }

  /** Recovers each directory's record into its `tree.bin`, then reads the trees. Order as given. */
  async recover(directories: readonly string[], signal?: AbortSignal): Promise<RolloutTree[]> {
    return Promise.all(
      directories.map(async (directory) => {
        const task: RecoverTask = { directory };
        const outcome = (await this.#pool.run(task, signal ? { signal } : {})) as RecoverOutcome;
        if (!outcome.ok) throw fromPlainError(outcome.error);
        return readTree(outcome.path);
      }),
    );
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
