import { policyLoss, type PolicyLossResult } from '@treeward/native';
import type { Trainable } from './trainable.js';
import type { PackedTrees, PolicyLoss, Scores, UpdateMetrics } from './types.js';

/** Sums over one mini-batch. */
export class MiniBatchMeter {
  #kl = 0;
  #tokens = 0;
  #clipped = 0;
  loss = 0;
  ratioMax = 0;
  hasGradient = false;

  add({ loss, gradLogp_T, stats }: PolicyLossResult): void {
    this.loss += loss;
    this.#kl += stats.approxKl * stats.tokens;
    this.#clipped += stats.clipfrac * stats.tokens;
    this.#tokens += stats.tokens;
    this.ratioMax = Math.max(this.ratioMax, stats.ratioMax);
    this.hasGradient ||= gradLogp_T.some((g) => g !== 0);
  }
  get tokens(): number {
    return this.#tokens;
  }
  get klSum(): number {
    return this.#kl;
  }
  get clippedSum(): number {
    return this.#clipped;
  }
  get approxKl(): number {
    return this.#tokens ? this.#kl / this.#tokens : 0;
  }
}

/** What an update reports (names: style.md). */
export class PolicyMeter {
  readonly #batch: PackedTrees;
  readonly #trainable: Trainable;
  readonly #old: Scores;
  readonly #loss: PolicyLoss;
  readonly #miniBatches: MiniBatchMeter[] = [];
  readonly #gradNorms: number[] = [];
  stopped = false;

  constructor(batch: PackedTrees, trainable: Trainable, old: Scores, loss: PolicyLoss) {
    this.#batch = batch;
    this.#trainable = trainable;
    this.#old = old;
    this.#loss = loss;
  }

  miniBatch(): MiniBatchMeter {
    const meter = new MiniBatchMeter();
    this.#miniBatches.push(meter);
    return meter;
  }

  step(gradNorm: number): void {
    this.#gradNorms.push(gradNorm);
  }

  finish(): UpdateMetrics {
    const all = this.#miniBatches;
    const sum = (pick: (meter: MiniBatchMeter) => number): number => all.reduce((s, m) => s + pick(m), 0);
    const tokens = Math.max(
      1,
      sum((m) => m.tokens),
    );
    const norms = this.#gradNorms;
    return {
      'loss/policy': all.length ? sum((m) => m.loss) / all.length : 0,
      'policy/approx_kl': sum((m) => m.klSum) / tokens,
      'policy/clipfrac': sum((m) => m.clippedSum) / tokens,
      'policy/ratio_max': Math.max(0, ...all.map((m) => m.ratioMax)),
      'policy/kl_stopped': this.stopped ? 1 : 0,
      ...this.#mismatch(),
      'optim/grad_norm': norms.length ? norms.reduce((a, b) => a + b) / norms.length : 0,
      'optim/grad_norm_max': Math.max(0, ...norms),
      'optim/updates': norms.length,
      'progress/tokens': this.#batch.tokens_T.length,
      'progress/tokens_owned': this.#trainable.owned,
      'progress/tokens_trained': this.#trainable.trained,
      'progress/tokens_unusable': this.#trainable.unusable,
    };
  }

  /** Learner at the start of the update against the engine, over every trainable token. */
  #mismatch(): UpdateMetrics {
    const { mask_T, trained } = this.#trainable;
    const { rolloutLogprobs_T } = this.#batch;
    let difference = 0;
    let absolute = 0;
    let largest = 0;
    let entropy = 0;
    mask_T.forEach((usable, t) => {
      if (!usable) return;
      const d = rolloutLogprobs_T[t]! - this.#old.logprobs_T[t]!;
      difference += d;
      absolute += Math.abs(d);
      largest = Math.max(largest, Math.abs(d));
      entropy += this.#old.entropies_T[t]!;
    });
    // Once over the whole batch, for the statistics that are not means.
    const { stats } = policyLoss(
      {
        logp_T: this.#old.logprobs_T,
        logpOld_T: this.#old.logprobs_T,
        logpRollout_T: rolloutLogprobs_T,
        advantages_T: this.#batch.advantages_T,
        mask_T: Float32Array.from(mask_T),
      },
      {
        clipLow: this.#loss.clipLow,
        clipHigh: this.#loss.clipHigh,
        truncation: this.#loss.truncation,
        normaliser: 1,
      },
    );
    const n = Math.max(1, trained);
    return {
      'policy/rollout_kl': difference / n,
      'policy/rollout_kl_k3': stats.rolloutKl,
      'policy/logprob_diff_mean': absolute / n,
      'policy/logprob_diff_max': largest,
      'policy/entropy': entropy / n,
      'policy/is_truncated_frac': stats.truncatedFrac,
      'policy/ess': stats.ess,
    };
  }
}
