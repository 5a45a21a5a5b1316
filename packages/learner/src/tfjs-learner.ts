import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { readCheckpoint, writeCheckpoint, type SavedModel } from './checkpoint/checkpoint.js';
import { copyCompanions } from './checkpoint/companions.js';
import { readPeft, writePeft } from './checkpoint/peft.js';
import type { Weights } from './checkpoint/weights.js';
import { writeGguf, type GgufType } from './export/gguf.js';
import type { ModelConfig } from './model/config.js';
import { tidy } from './model/decoder.js';
import { isLora, mergeLora, type LoraOptions } from './model/lora.js';
import { openModels } from './open-models.js';
import { resolveOptimizer, type OptimizerOptions } from './optim/options.js';
import { buildForest } from './pack/forest.js';
import { loadTensorFlow } from './tf/load.js';
import { Ops } from './tf/ops.js';
import { assertKnownTokens, forEachRow, hasPrediction } from './trainable.js';
import type {
  Learner,
  LearnerCapabilities,
  Loss,
  OptimizerStep,
  PackedTrees,
  Scores,
  UpdateMetrics,
} from './types.js';
import { policyUpdate } from './update/policy-update.js';
import { scoreTokens } from './update/score.js';
import { sftUpdate } from './update/sft-update.js';
import {
  disposeState,
  type Model,
  type ModelState,
  type TrainState,
  type Workbench,
} from './update/state.js';
import { valueUpdate } from './update/value-update.js';
import { toArrays, toTensors } from './weights-store.js';
import type { Policy, WeightsRef } from './weights.js';

export interface TfjsLearnerOptions {
  /**
   * A folder with `config.json` and safetensors, or `hf:org/name[@revision]`: weights only, with a fresh optimizer (`load`
   * restores both).
   */
  checkpoint?: string;
  /** Random weights instead. One of the two must be given. */
  init?: { config: ModelConfig; seed: string | number };
  optimizer?: OptimizerOptions;
  /** Train low-rank adapters instead of the weights. */
  lora?: LoraOptions;
  /** A value model of its own (from `checkpoint`, by default the policy's weights), or a head on the policy's trunk. */
  critic?: { kind: 'model'; checkpoint?: string; optimizer?: OptimizerOptions } | { kind: 'head' };
  /** Checkpoint that a KL term is taken against. */
  reference?: string;
  /** Threads inside one operator. @default 1 */
  threads?: number;
  /** Distinct tokens per forward/backward pass; a longer path stands alone. @default 2048 */
  microBatchTokens?: number;
  /** Passes of more tokens than this keep only each layer's input (activation checkpointing). @default 8192 */
  checkpointAbove?: number;
  /** Type of the matrices in published GGUF files. @default 'f32' */
  publishType?: GgufType;
  /** Published policies are called `<policyName>-<version>`. @default 'policy' */
  policyName?: string;
}

/**
 * The embedded learner: a Qwen3 or Llama decoder on TensorFlow. It blocks its thread while it computes, so run it in a
 * process of its own (`learner-main.ts`, `RemoteLearner`). Calls are answered one after the other.
 */
export class TfjsLearner implements Learner {
  #bench: Workbench;
  #state: TrainState;
  readonly #policyName: string;
  readonly #publishType: GgufType;
  readonly #source: string | null;
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(
    bench: Workbench,
    state: TrainState,
    named: { policyName: string; publishType: GgufType; source: string | null },
  ) {
    this.#bench = bench;
    this.#state = state;
    this.#policyName = named.policyName;
    this.#publishType = named.publishType;
    this.#source = named.source;
  }

  /** @throws TreewardError LEARNER_E_OPTIONS, LEARNER_E_CONFIG, LEARNER_E_WEIGHTS, LEARNER_E_HUB, LEARNER_E_TENSORFLOW */
  static async open(options: TfjsLearnerOptions): Promise<TfjsLearner> {
    const opened = await openModels(options);
    const ops = new Ops(loadTensorFlow(options.threads === undefined ? {} : { threads: options.threads }));
    const critic = options.critic?.kind === 'model' ? options.critic : undefined;
    const bench: Workbench = {
      ops,
      policy: {
        config: opened.policy.config,
        optimizer: resolveOptimizer(options.optimizer),
        lora: options.lora ?? null,
      },
      critic: opened.critic && {
        config: opened.critic.config,
        optimizer: resolveOptimizer(critic?.optimizer),
        lora: null,
      },
      reference: opened.reference && toTensors(ops, opened.reference),
      microBatchTokens: options.microBatchTokens ?? 2048,
      checkpointAbove: options.checkpointAbove ?? 8192,
    };
    const fresh = ({ params }: Weights): ModelState => ({
      params: toTensors(ops, params),
      optimizer: { steps: 0, moments: new Map() },
    });
    const state: TrainState = {
      policy: fresh(opened.policy),
      critic: opened.critic && fresh(opened.critic),
      version: 0,
    };
    return new TfjsLearner(bench, state, {
      policyName: options.policyName ?? 'policy',
      publishType: options.publishType ?? 'f32',
      source: opened.source,
    });
  }

  capabilities(): Promise<LearnerCapabilities> {
    const { policy, critic } = this.#bench;
    return Promise.resolve({
      losses: critic ? ['policy', 'sft', 'value'] : ['policy', 'sft'],
      critic: critic !== null || policy.config.output === 'tokens+value',
      fullFineTune: policy.lora === null,
      prefixSharing: true,
      reduction: 'sum',
    });
  }

  score(batch: PackedTrees): Promise<Scores> {
    return this.#serial(async () => {
      assertKnownTokens(batch, this.#bench.policy.config.vocabSize);
      const wanted: number[] = [];
      forEachRow(batch, (row, from, to) => {
        for (let t = from; t < to; t++)
          if (batch.owned_T[t] === 1 && hasPrediction(batch, row, t)) wanted.push(t);
      });
      try {
        return await scoreTokens(this.#bench, this.#state.policy.params, batch, buildForest(batch), wanted);
      } finally {
        this.#bench.ops.trim();
      }
    });
  }

  update(batch: PackedTrees, loss: Loss, step: OptimizerStep): Promise<UpdateMetrics> {
    return this.#serial(async () => {
      assertKnownTokens(batch, this.#bench.policy.config.vocabSize);
      const { state, metrics } = await this.#updated(batch, loss, step);
      // A policy that did not move is still the same version.
      const version = this.#state.version + (loss.kind === 'value' ? 0 : 1);
      this.#replace({ ...state, version });
      return metrics;
    });
  }

  publish(directory: string): Promise<{ policy: Policy; weights: WeightsRef }> {
    return this.#serial(() => {
      const { version } = this.#state;
      const path = join(directory, `policy-${version}.gguf`);
      const { config, params } = this.#exported();
      writeGguf(path, config, params, this.#publishType);
      return Promise.resolve({
        policy: { id: `${this.#policyName}-${version}`, version },
        weights: { format: 'gguf' as const, path },
      });
    });
  }

  save(directory: string): Promise<void> {
    return this.#serial(() => {
      const { policy, critic, version } = this.#state;
      const bench = this.#bench;
      if (this.#source) copyCompanions(this.#source, directory);
      if (bench.policy.lora) {
        writePeft(directory, toArrays(policy.params), bench.policy.lora, this.#source ?? '');
      }
      writeCheckpoint(
        directory,
        { weights: this.#exported(), moments: toArrays(policy.optimizer.moments) },
        critic &&
          bench.critic && {
            weights: { config: bench.critic.config, params: toArrays(critic.params) },
            moments: toArrays(critic.optimizer.moments),
          },
        {
          schema: 1,
          version,
          optimizerSteps: policy.optimizer.steps,
          optimizer: bench.policy.optimizer,
          ...(critic && { criticSteps: critic.optimizer.steps }),
        },
      );
      return Promise.resolve();
    });
  }

  load(directory: string): Promise<void> {
    return this.#serial(() => {
      const { policy, critic, state } = readCheckpoint(directory);
      const bench = this.#bench;
      if (state.optimizer.kind !== bench.policy.optimizer.kind) {
        throw new TreewardError(
          'LEARNER_E_OPTIMIZER',
          `${directory} was trained with ${state.optimizer.kind}, this learner uses ${bench.policy.optimizer.kind}`,
          { hints: ['to start afresh from its weights, open it as `checkpoint`'] },
        );
      }
      if ((critic === null) !== (this.#state.critic === null)) {
        throw new TreewardError(
          'LEARNER_E_CRITIC',
          `${directory} was saved ${critic ? 'with' : 'without'} a value model, this learner is ${critic ? 'without' : 'with'} one`,
        );
      }
      const restored = (saved: SavedModel, steps: number): ModelState => ({
        params: toTensors(bench.ops, saved.weights.params),
        optimizer: { steps, moments: toTensors(bench.ops, saved.moments) },
      });
      this.#replace({
        policy: bench.policy.lora
          ? this.#withAdapters(directory, bench.policy.lora, policy.moments, state.optimizerSteps)
          : restored(policy, state.optimizerSteps),
        critic: critic && restored(critic, state.criticSteps!),
        version: state.version,
      });
      const withConfig = (model: Model, saved: SavedModel): Model => ({
        ...model,
        config: saved.weights.config,
      });
      this.#bench = {
        ...bench,
        policy: withConfig(bench.policy, policy),
        critic: bench.critic && critic && withConfig(bench.critic, critic),
      };
      return Promise.resolve();
    });
  }

  close(): Promise<void> {
    return this.#serial(() => {
      disposeState(this.#state);
      for (const tensor of this.#bench.reference?.values() ?? []) tensor.dispose();
      this.#bench.ops.trim();
      return Promise.resolve();
    });
  }

  #updated(
    batch: PackedTrees,
    loss: Loss,
    step: OptimizerStep,
  ): Promise<{ state: TrainState; metrics: UpdateMetrics }> {
    switch (loss.kind) {
      case 'sft':
        return sftUpdate(this.#bench, this.#state, batch, step);
      case 'value':
        return valueUpdate(this.#bench, this.#state, batch, loss, step);
      case 'policy':
        return policyUpdate(this.#bench, this.#state, batch, loss, step);
    }
  }

  /** What readers get: adapters merged. */
  #exported(): Weights {
    const { ops, policy } = this.#bench;
    const { params } = this.#state.policy;
    const { lora, config } = policy;
    if (!lora) return { config, params: toArrays(params) };
    return { config, params: tidy(ops.tf, () => toArrays(mergeLora(ops, params, lora))) };
  }

  /** The base is the one this learner was opened with; a checkpoint's `model.safetensors` has the adapters merged in. */
  #withAdapters(
    directory: string,
    lora: LoraOptions,
    moments: SavedModel['moments'],
    steps: number,
  ): ModelState {
    const { ops } = this.#bench;
    const base = [...this.#state.policy.params].filter(([name]) => !isLora(name));
    return {
      params: new Map([...base, ...toTensors(ops, readPeft(directory, lora))]),
      optimizer: { steps, moments: toTensors(ops, moments) },
    };
  }

  #replace(next: TrainState): void {
    disposeState(this.#state, next);
    this.#state = next;
  }

  #serial<R>(work: () => Promise<R>): Promise<R> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }
}
