import { TreewardError } from '@treeward/base';
import { policyLoss, type PolicyLossResult } from '@treeward/native';
import type { Trainable } from '../trainable.js';
import type { Scores, UpdateMetrics } from '../types.js';
import { lossOptions, type PolicyTerms } from './policy-objective.js';

/** Sums over one mini-batch. */
export class MiniBatchMeter {
  #kl = 0;
  #refKl = 0;
  #tokens = 0;
  #clipped = 0;
  loss = 0;
  valueLoss = 0;
  ratioMax = 0;
  /** Distinct tokens that went through the model. */
  computed = 0;
  hasGradient = false;

  add({ loss, gradLogp_T, stats }: PolicyLossResult): void {
    this.loss += loss;
    this.#kl += stats.approxKl * stats.tokens;
    this.#refKl += stats.refKl * stats.tokens;
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
  get refKlSum(): number {
    return this.#refKl;
  }
  get clippedSum(): number {
    return this.#clipped;
  }
  get approxKl(): number {
    return this.#tokens ? this.#kl / this.#tokens : 0;
  }
}

/** Which version sampled each token, and which one is trained. */
interface Versions {
  version_T: Int32Array;
  version: number;
}

/** What an update reports (names: style.md). */
export class PolicyMeter {
  readonly #terms: PolicyTerms;
  readonly #trainable: Trainable;
  readonly #old: Scores;
  readonly #versions: Versions;
  readonly #miniBatches: MiniBatchMeter[] = [];
  readonly #gradNorms: number[] = [];
  readonly #mismatch: UpdateMetrics;
  stopped = false;

  constructor(terms: PolicyTerms, trainable: Trainable, old: Scores, versions: Versions) {
    this.#terms = terms;
    this.#trainable = trainable;
    this.#old = old;
    this.#versions = versions;
    this.#mismatch = this.#measureMismatch();
  }

  /** @throws TreewardError LEARNER_E_MISMATCH when engine and learner mean different things by a probability */
  guard(limit: number): void {
    const found = this.#mismatch['policy/logprob_diff_mean']!;
    if (found <= limit) return;
    throw new TreewardError(
      'LEARNER_E_MISMATCH',
      `log-probabilities of engine and learner differ by ${found.toFixed(3)} on average, more than ${limit}: not trained`,
      {
        data: { found, limit },
        hints: [
          'is the engine serving the version it says, with the template and temperature of this run?',
          'does it report log-probabilities of the distribution it samples from?',
        ],
      },
    );
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
    const { batch, loss } = this.#terms;
    const all = this.#miniBatches;
    const sum = (pick: (meter: MiniBatchMeter) => number): number => all.reduce((s, m) => s + pick(m), 0);
    const tokens = Math.max(
      1,
      sum((m) => m.tokens),
    );
    const norms = this.#gradNorms;
    const perBatch = (pick: (meter: MiniBatchMeter) => number): number =>
      all.length ? sum(pick) / all.length : 0;
    return {
      'loss/policy': perBatch((m) => m.loss),
      ...(loss.critic && { 'loss/value': perBatch((m) => m.valueLoss) }),
      'policy/approx_kl': sum((m) => m.klSum) / tokens,
      ...(loss.klCoef && { 'policy/ref_kl': sum((m) => m.refKlSum) / tokens }),
      'policy/clipfrac': sum((m) => m.clippedSum) / tokens,
      'policy/ratio_max': Math.max(0, ...all.map((m) => m.ratioMax)),
      'policy/kl_stopped': this.stopped ? 1 : 0,
      ...this.#mismatch,
      'optim/grad_norm': norms.length ? norms.reduce((a, b) => a + b) / norms.length : 0,
      'optim/grad_norm_max': Math.max(0, ...norms),
      'optim/updates': norms.length,
      'progress/tokens': batch.tokens_T.length,
      'progress/tokens_owned': this.#trainable.owned,
      'progress/tokens_trained': this.#trainable.trained,
      'progress/tokens_unusable': this.#trainable.unusable,
      'off_policy/dropped': this.#trainable.stale,
      'perf/tokens_computed': sum((m) => m.computed),
    };
  }

  /**
   * Learner at the start of the update against the engine, over the trainable tokens that the current version sampled (or
   * that do not say): older ones differ for a good reason.
   */
  #measureMismatch(): UpdateMetrics {
    const { mask_T, trained } = this.#trainable;
    const { batch, loss } = this.#terms;
    const { rolloutLogprobs_T } = batch;
    const { version_T, version } = this.#versions;
    let [difference, absolute, largest, entropy, current] = [0, 0, 0, 0, 0];
    let [lag, lagMax, known] = [0, 0, 0];
    mask_T.forEach((usable, t) => {
      if (!usable) return;
      entropy += this.#old.entropies_T[t]!;
      if (version_T[t]! >= 0) {
        known += 1;
        lag += version - version_T[t]!;
        lagMax = Math.max(lagMax, version - version_T[t]!);
        if (version_T[t] !== version) return;
      }
      const d = rolloutLogprobs_T[t]! - this.#old.logprobs_T[t]!;
      current += 1;
      difference += d;
      absolute += Math.abs(d);
      largest = Math.max(largest, Math.abs(d));
    });
    // Once over the whole batch, for the statistics that are not means.
    const { stats } = policyLoss(
      {
        logp_T: this.#old.logprobs_T,
        logpOld_T: this.#old.logprobs_T,
        logpRollout_T: rolloutLogprobs_T,
        advantages_T: this.#terms.advantages_T,
        mask_T: Float32Array.from(mask_T),
      },
      { ...lossOptions(loss, 1), objective: 'ppo', kl: 'none', entropyCoef: 0 },
    );
    const n = Math.max(1, current);
    return {
      'policy/rollout_kl': difference / n,
      'policy/rollout_kl_k3': stats.rolloutKl,
      'policy/logprob_diff_mean': absolute / n,
      'policy/logprob_diff_max': largest,
      'policy/entropy': entropy / Math.max(1, trained),
      'policy/is_truncated_frac': stats.truncatedFrac,
      'policy/ess': stats.ess,
      'off_policy/mean': lag / Math.max(1, known),
      'off_policy/max': lagMax,
    };
  }
}
