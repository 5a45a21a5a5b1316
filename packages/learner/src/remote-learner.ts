import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { rpcClient, type RpcClient } from '@treeward/base';
import { readScores, writeBatch } from './batch-file.js';
import type {
  Learner,
  LearnerCapabilities,
  Loss,
  OptimizerStep,
  PackedTrees,
  Scores,
  UpdateMetrics,
} from './types.js';
import type { Policy, WeightsRef } from './weights.js';

/**
 * A learner in another process (`learner-main.ts`). Batches go by file, under `scratch`, and are removed once answered.
 *
 * No call is repeated on a broken connection: an update whose answer was lost may have happened. Whoever restarts the
 * process loads the last checkpoint and repeats the step.
 */
export class RemoteLearner implements Learner {
  readonly #rpc: RpcClient;
  readonly #scratch: string;
  #files = 0;

  constructor(socketPath: string, options: { scratch: string }) {
    this.#rpc = rpcClient(socketPath);
    this.#scratch = options.scratch;
  }

  capabilities(): Promise<LearnerCapabilities> {
    return this.#rpc.call('capabilities');
  }

  score(batch: PackedTrees): Promise<Scores> {
    return this.#withBatch(batch, async (file) => {
      const output = `${file}.scores`;
      try {
        await this.#rpc.call('score', { batch: file, output });
        return readScores(output);
      } finally {
        rmSync(output, { force: true });
      }
    });
  }

  update(batch: PackedTrees, loss: Loss, step: OptimizerStep): Promise<UpdateMetrics> {
    return this.#withBatch(batch, (file) =>
      this.#rpc.call<UpdateMetrics>('update', { batch: file, loss: withoutInfinities(loss), step }),
    );
  }

  publish(directory: string): Promise<{ policy: Policy; weights: WeightsRef }> {
    return this.#rpc.call('publish', { directory });
  }

  async save(directory: string): Promise<void> {
    await this.#rpc.call('save', { directory });
  }

  async load(directory: string): Promise<void> {
    await this.#rpc.call('load', { directory });
  }

  async close(): Promise<void> {
    await this.#rpc.call('close');
    this.#rpc.close();
  }

  async #withBatch<R>(batch: PackedTrees, use: (file: string) => Promise<R>): Promise<R> {
    mkdirSync(this.#scratch, { recursive: true });
    const file = join(this.#scratch, `batch-${process.pid}-${this.#files++}.safetensors`);
    writeBatch(file, batch);
    try {
      return await use(file);
    } finally {
      rmSync(file, { force: true });
    }
  }
}

/** JSON has no infinity; a limit that is left out is none. */
function withoutInfinities<S extends object>(settings: S): S {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([key, value]: [string, unknown]) => {
      if (value === Infinity) return [];
      return [[key, typeof value === 'object' && value !== null ? withoutInfinities(value) : value]];
    }),
  ) as S;
}
