import type { JudgeAnswer, JudgeModel, JudgeQuestion } from './model.js';

/** What a scripted judge says: a text, a score for every criterion, or one for each. */
export type ScriptedReply = string | number | readonly number[];

/** Says what it was told to, by what is judged (`*`: anything else); the last reply is repeated. For tests and dry runs. */
export class ScriptedJudge implements JudgeModel {
  readonly name: string;
  readonly #replies: Readonly<Record<string, readonly ScriptedReply[]>>;
  readonly #asked = new Map<string, number>();
  readonly questions: JudgeQuestion[] = [];

  constructor(replies: Readonly<Record<string, readonly ScriptedReply[]>>) {
    this.#replies = replies;
    this.name = `scripted:${JSON.stringify(replies)}`;
  }

  async ask(question: JudgeQuestion): Promise<JudgeAnswer> {
    this.questions.push(question);
    const list = this.#replies[question.tag] ?? this.#replies['*'] ?? [''];
    const count = this.#asked.get(question.tag) ?? 0;
    this.#asked.set(question.tag, count + 1);
    const reply = list[Math.min(count, list.length - 1)] ?? '';
    const text = typeof reply === 'string' ? reply : verdictText(question.user, reply);
    return {
      text,
      inputTokens: Math.ceil(question.user.length / 4),
      outputTokens: Math.ceil(text.length / 4),
    };
  }
}

/** A valid reply for the rubric in a prompt. */
function verdictText(prompt: string, reply: number | readonly number[]): string {
  const names = [...prompt.slice(prompt.lastIndexOf('<RUBRIC>')).matchAll(/^(criterion_\d+): /gm)].map(
    ([, name]) => name!,
  );
  const scores = Object.fromEntries(
    names.map((name, index) => [name, typeof reply === 'number' ? reply : reply[index]]),
  );
  return `As scripted.\n${JSON.stringify({ scores, notes: 'scripted' })}`;
}
