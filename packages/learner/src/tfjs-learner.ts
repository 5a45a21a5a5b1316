import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { readCheckpoint, readWeights, writeCheckpoint, type Weights } from './checkpoint.js';
import { writeGguf } from './export/gguf.js';
import type { ModelConfig } from './model/config.js';
import { initParams } from './model/params.js';
import { resolveOptimizer, type OptimizerOptions } from './optim/options.js';
import { policyUpdate } from './policy-update.js';
import { scoreTokens } from './score.js';
import { sftUpdate } from './sft-update.js';
import { disposeState, type TrainState, type Workbench } from './state.js';
import { loadTensorFlow } from './tf/load.js';
import { Ops } from './tf/ops.js';
import type {
  Learner,
  LearnerCapabilities,
  Loss,
  OptimizerStep,
  PackedTrees,
  Scores,
  UpdateMetrics,
} from './types.js';
import { disposeAll, toArrays, toTensors, withFused } from './weights-store.js';
import type { Policy, WeightsRef } from './weights.js';

export interface TfjsLearnerOptions {
  /** Folder with `config.json` and `model.safetensors`: weights only, with a fresh optimizer (`load` restores both). */
  checkpoint?: string;
  /** Random weights instead. One of the two must be given. */
  init?: { config: ModelConfig; seed: string | number };
  optimizer?: OptimizerOptions;
  /** Threads inside one operator. @default 1 */
  threads?: number;
  /** Padded tokens per forward/backward pass. @default 2048 */
  microBatchTokens?: number;
  /** Published policies are called `<policyName>-<version>`. @default 'policy' */
  policyName?: string;
}

/**
 * The embedded learner: a Qwen3 decoder on TensorFlow's CPU kernels. It blocks its thread while it computes, so run it in
 * a process of its own (`learner-main.ts`, `RemoteLearner`). Calls are answered one after the other.
 */
export class TfjsLearner implements Learner {
  #bench: Workbench;
  #state: TrainState;
  readonly #policyName: string;
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(bench: Workbench, state: TrainState, policyName: string) {
    this.#bench = bench;
    this.#state = state;
    this.#policyName = policyName;
  }

  /** @throws TreewardError LEARNER_E_OPTIONS, LEARNER_E_CONFIG, LEARNER_E_WEIGHTS, LEARNER_E_TENSORFLOW */
  static async open(options: TfjsLearnerOptions): Promise<TfjsLearner> {
    const { checkpoint, init } = options;
    if ((checkpoint === undefined) === (init === undefined)) {
      throw new TreewardError(
        'LEARNER_E_OPTIONS',
        'give either `checkpoint` or `init`, not both and not none',
      );
    }
    const weights: Weights =
      checkpoint !== undefined
        ? readWeights(checkpoint)
        : { config: init!.config, params: initParams(init!.config, init!.seed) };
    const ops = new Ops(loadTensorFlow(options.threads === undefined ? {} : { threads: options.threads }));
    const bench: Workbench = {
      ops,
      config: weights.config,
      optimizer: resolveOptimizer(options.optimizer),
      microBatchTokens: options.microBatchTokens ?? 2048,
    };
    const state: TrainState = {
      params: toTensors(ops, weights.params),
      optimizer: { steps: 0, moments: new Map() },
      version: 0,
    };
    return new TfjsLearner(bench, state, options.policyName ?? 'policy');
  }

  capabilities(): Promise<LearnerCapabilities> {
    return Promise.resolve({
      losses: ['policy', 'sft'],
      critic: false,
      fullFineTune: true,
      prefixSharing: false,
      reduction: 'sum',
    });
  }

  score(batch: PackedTrees): Promise<Scores> {
    return this.#serial(async () => {
      const { ops, config } = this.#bench;
      const first = new Set(batch.rowStart_B1);
      try {
        return await withFused(ops, config, this.#state.params, (fused) =>
          scoreTokens(this.#bench, fused, batch, (token) => batch.owned_T[token] === 1 && !first.has(token)),
        );
      } finally {
        ops.trim();
      }
    });
  }

  update(batch: PackedTrees, loss: Loss, step: OptimizerStep): Promise<UpdateMetrics> {
    return this.#serial(async () => {
      const { state, metrics } =
        loss.kind === 'sft'
          ? await sftUpdate(this.#bench, this.#state, batch, step)
          : await policyUpdate(this.#bench, this.#state, batch, loss, step);
      this.#replace({ ...state, version: this.#state.version + 1 });
      return metrics;
    });
  }

  publish(directory: string): Promise<{ policy: Policy; weights: WeightsRef }> {
    return this.#serial(() => {
      const { version, params } = this.#state;
      const path = join(directory, `policy-${version}.gguf`);
      writeGguf(path, this.#bench.config, toArrays(params));
      return Promise.resolve({
        policy: { id: `${this.#policyName}-${version}`, version },
        weights: { format: 'gguf' as const, path },
      });
    });
  }

  save(directory: string): Promise<void> {
    return this.#serial(() => {
      const { params, optimizer, version } = this.#state;
      writeCheckpoint(
        directory,
        { config: this.#bench.config, params: toArrays(params) },
        toArrays(optimizer.moments),
        { schema: 1, version, optimizerSteps: optimizer.steps, optimizer: this.#bench.optimizer },
      );
      return Promise.resolve();
    });
  }

  load(directory: string): Promise<void> {
    return this.#serial(() => {
      const { weights, moments, state } = readCheckpoint(directory);
      if (state.optimizer.kind !== this.#bench.optimizer.kind) {
        throw new TreewardError(
          'LEARNER_E_OPTIMIZER',
          `${directory} was trained with ${state.optimizer.kind}, this learner uses ${this.#bench.optimizer.kind}`,
          { hints: ['to start afresh from its weights, open it as `checkpoint`'] },
        );
      }
      const { ops } = this.#bench;
      this.#bench = { ...this.#bench, config: weights.config };
      this.#replace({
        params: toTensors(ops, weights.params),
        optimizer: { steps: state.optimizerSteps, moments: toTensors(ops, moments) },
        version: state.version,
      });
      return Promise.resolve();
    });
  }

  close(): Promise<void> {
    return this.#serial(() => {
      disposeState(this.#state);
      this.#bench.ops.trim();
      return Promise.resolve();
    });
  }

  #replace(next: TrainState): void {
    const kept = new Set([...next.params.values(), ...next.optimizer.moments.values()]);
    const old = [...this.#state.params.values(), ...this.#state.optimizer.moments.values()];
    disposeAll(old.filter((tensor) => !kept.has(tensor)));
    this.#state = next;
  }

  #serial<R>(work: () => Promise<R>): Promise<R> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }
}
