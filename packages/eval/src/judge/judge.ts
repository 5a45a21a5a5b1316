import { toPlainError, TreewardError } from '@treeward/base';
import { costOf, type Price } from '../transcript/events.js';
import type { Criterion, Rubric } from '../types.js';
import type { JudgeCache } from './cache.js';
import { parseVerdict, type Verdict } from './contract.js';
import type { JudgeModel, JudgeQuestion } from './model.js';
import { judgePrompt, type Cut, type JudgeSlots, type PromptLimits } from './prompt.js';

export interface JudgeOptions {
  cache?: JudgeCache;
  /** Replies asked for until one keeps the contract. @default 3 */
  attempts?: number;
  /** Independent judgements of one thing; their mean is the score, their spread the agreement. @default 1 */
  repeats?: number;
  /** @default 'mean', as PinchBench's own prompt asks; `rubric_weights` uses the percentages of its rubrics */
  aggregate?: 'mean' | 'rubric_weights';
  /** @default per file 20000 characters, together 200000 */
  limits?: PromptLimits;
  /** @default 0 */
  temperature?: number;
  /** @default 2048 */
  maxTokens?: number;
  price?: Price | null;
  /** One judgement after the other, for endpoints that take no more. @default false */
  oneAtATime?: boolean;
}

export interface JudgeGrade {
  model: string;
  /** Null: not graded (`error`), never 0. */
  score: number | null;
  /** Both aggregates, whichever is the score. */
  mean: number | null;
  weighted: number | null;
  /** Mean over the repeats, by criterion. */
  criteria: { name: string; score: number; weight: number }[];
  notes: string;
  /** Scores by repeat and criterion. */
  repeats: number[][];
  attempts: number;
  cached: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number;
  cuts: Cut[];
  error: { code: string; message: string } | null;
}

export interface JudgeRequest {
  /** Names what is judged (the task), for messages and the scripted judge. */
  tag: string;
  rubric: Rubric;
  slots: Omit<JudgeSlots, 'criteria'>;
  /** Criteria that need no judge, because the file they are about is missing: they score their lowest anchor. */
  missing: ReadonlySet<number>;
  signal?: AbortSignal;
}

/** Asks, checks, asks again, aggregates. A reply that breaks the contract to the end is "not graded". */
export class Judge {
  readonly #model: JudgeModel;
  readonly #options: JudgeOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(model: JudgeModel, options: JudgeOptions = {}) {
    this.#model = model;
    this.#options = options;
  }

  get name(): string {
    return this.#model.name;
  }

  grade(request: JudgeRequest): Promise<JudgeGrade> {
    if (!this.#options.oneAtATime) return this.#grade(request);
    const turn = this.#last.then(() => this.#grade(request));
    this.#last = turn.catch(() => undefined); // its caller hears of it
    return turn;
  }

  async #grade(request: JudgeRequest): Promise<JudgeGrade> {
    const { rubric, missing } = request;
    const asked = rubric.criteria.filter((_, index) => !missing.has(index));
    const limits = this.#options.limits ?? { perFile: 20_000, total: 200_000 };
    const { system, user, cuts } = judgePrompt({ ...request.slots, criteria: asked }, limits);
    const { temperature = 0, maxTokens = 2048, price = null } = this.#options;
    const question = { system, user, temperature, maxTokens, tag: request.tag };
    const grade: JudgeGrade = {
      ...{ model: this.#model.name, score: null, mean: null, weighted: null, criteria: [], notes: '' },
      ...{
        repeats: [],
        attempts: 0,
        cached: 0,
        inputTokens: 0,
        outputTokens: 0,
        costUsd: 0,
        cuts,
        error: null,
      },
    };
    try {
      for (let repeat = 0; repeat < (asked.length === 0 ? 0 : (this.#options.repeats ?? 1)); repeat++) {
        const verdict = await this.#verdict(question, repeat, asked, grade, request.signal);
        grade.repeats.push(verdict.scores);
        grade.notes ||= verdict.notes;
      }
      aggregate(grade, rubric, missing, this.#options.aggregate ?? 'mean');
    } catch (error) {
      request.signal?.throwIfAborted();
      const { code, message } = toPlainError(error);
      grade.error = { code, message };
    }
    grade.costUsd = costOf(price, grade.inputTokens, grade.outputTokens);
    return grade;
  }

  async #verdict(
    question: JudgeQuestion,
    repeat: number,
    criteria: readonly Criterion[],
    grade: JudgeGrade,
    signal?: AbortSignal,
  ): Promise<Verdict> {
    const { cache, attempts = 3 } = this.#options;
    const key = cache?.key(this.#model.name, question, repeat) ?? '';
    const known = cache?.get(key);
    if (known) {
      grade.cached++;
      return parseVerdict(known.text, criteria);
    }
    let asked = question;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#model.ask(asked, signal);
      grade.attempts++;
      grade.inputTokens += answer.inputTokens;
      grade.outputTokens += answer.outputTokens;
      try {
        const verdict = parseVerdict(answer.text, criteria);
        cache?.put(key, this.#model.name, answer);
        return verdict;
      } catch (error) {
        if (!TreewardError.isInstance(error) || attempt >= attempts) throw error;
        // A fresh context again, told what was wrong: the contract is the same.
        asked = {
          ...question,
          user: `${question.user}\n\nAn earlier reply was refused: ${error.message}. Keep to the form exactly.`,
        };
      }
    }
  }
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

function aggregate(
  grade: JudgeGrade,
  rubric: Rubric,
  missing: ReadonlySet<number>,
  how: 'mean' | 'rubric_weights',
): void {
  let at = -1;
  const scores = rubric.criteria.map(({ anchors }, index) => {
    if (missing.has(index)) return anchors?.[0] ?? 0;
    at++;
    return meanOf(grade.repeats.map((repeat) => repeat[at]!));
  });
  grade.criteria = rubric.criteria.map(({ name, weight }, index) => ({
    name,
    weight,
    score: scores[index]!,
  }));
  if (rubric.groups) {
    // All criteria of a group in all repeats, or nothing.
    const total = rubric.groups.reduce((sum, { weight }) => sum + weight, 0);
    const held = rubric.groups.map(({ criteria }) =>
      Math.floor(Math.min(...criteria.map((index) => scores[index]!)) + 1e-9),
    );
    grade.mean = meanOf(held);
    grade.weighted = rubric.groups.reduce((sum, { weight }, index) => sum + weight * held[index]!, 0) / total;
    grade.score = grade.weighted;
    return;
  }
  const weights = rubric.criteria.reduce((sum, { weight }) => sum + weight, 0);
  grade.mean = meanOf(scores);
  grade.weighted =
    weights > 0
      ? scores.reduce((sum, score, index) => sum + score * rubric.criteria[index]!.weight, 0) / weights
      : grade.mean;
  grade.score = how === 'mean' ? grade.mean : grade.weighted;
}
