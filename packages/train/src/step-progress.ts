import type { RolloutResult } from '@treeward/rollout';
import { mean, type Metrics } from './metrics.js';
import { duration, type Progress } from './progress.js';

/** Progress of one step: rollouts done, reward so far, sampled tokens per second, time left in the run. */
export class StepProgress {
  static #stepSeconds: number[] = [];
  readonly #progress: Progress;
  readonly #step: number;
  readonly #steps: number;
  readonly #total: number;
  readonly #start = Date.now();
  readonly #rewards: number[] = [];
  #done = 0;
  #tokens = 0;

  constructor(progress: Progress, step: number, steps: number, total: number) {
    this.#progress = progress;
    this.#step = step;
    this.#steps = steps;
    this.#total = total;
  }

  done(result: RolloutResult): void {
    this.#done++;
    this.#tokens += result.sampledTokens;
    if (result.reward !== null) this.#rewards.push(result.reward);
    const seconds = (Date.now() - this.#start) / 1000;
    const perStep = StepProgress.#stepSeconds.length
      ? mean(StepProgress.#stepSeconds)
      : (seconds / this.#done) * this.#total;
    const left = perStep * (this.#steps - this.#step) + (seconds / this.#done) * (this.#total - this.#done);
    const reward = this.#rewards.length ? mean(this.#rewards).toFixed(3) : '–';
    this.#progress.update(
      `step ${this.#step}/${this.#steps} · ${this.#done}/${this.#total} rollouts · reward ${reward} · ${(this.#tokens / seconds).toFixed(0)} tokens/s · ${duration(left)} left`,
    );
  }

  finish(metrics: Metrics): void {
    const seconds = (Date.now() - this.#start) / 1000;
    StepProgress.#stepSeconds.push(seconds);
    const show = (name: string, digits = 3): string => metrics[name]?.toFixed(digits) ?? '–';
    const perHarness = Object.keys(metrics)
      .flatMap((name) => /^reward\/all\/(.+)\/mean$/.exec(name)?.[1] ?? [])
      .map((harness) => `${harness} ${show(`reward/all/${harness}/mean`)}`)
      .join(', ');
    this.#progress.line(
      `step ${this.#step}/${this.#steps}  reward ${show('reward/all/mean')} (${perHarness})  kl ${show('policy/approx_kl', 4)}  ` +
        `|Δlogp| ${show('policy/logprob_diff_mean', 5)}  grad ${show('optim/grad_norm')}  ${duration(seconds)}`,
    );
  }
}
