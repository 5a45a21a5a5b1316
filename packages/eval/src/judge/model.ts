export interface JudgeQuestion {
  system: string;
  user: string;
  temperature: number;
  maxTokens: number;
  /** What is judged; only a scripted judge looks at it. */
  tag: string;
}

export interface JudgeAnswer {
  text: string;
  inputTokens: number;
  outputTokens: number;
}

/** Something that answers one prompt in a fresh context, without tools. */
export interface JudgeModel {
  /** Part of the cache's key: names everything that decides the answer. */
  readonly name: string;
  /** @throws TreewardError JUDGE_E_HTTP, JUDGE_E_TIMEOUT, JUDGE_E_UNREACHABLE, JUDGE_E_REPLY, JUDGE_E_AUTH */
  ask(question: JudgeQuestion, signal?: AbortSignal): Promise<JudgeAnswer>;
}
