import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  readJson,
  RolloutFolder,
  toPlainError,
  TreewardError,
  writeFileAtomic,
  writeJsonAtomic,
} from '@treeward/base';
import { loadTask, SandboxGrader, type Grade, type Grader, type Task } from '@treeward/rollout';
import type { SandboxProvider } from '@treeward/sandbox';
import { readMaterialised, type WrittenTask } from '../formats/materialise.js';
import { scoreAnswer } from '../formats/officeqa-score.js';
import { gatherEvidence } from '../judge/evidence.js';
import type { Judge, JudgeGrade } from '../judge/judge.js';
import { readEpisode, type Episode } from '../transcript/conversations.js';
import {
  finalMessage,
  summariseTranscript,
  transcriptEvents,
  type Price,
  type TranscriptEvent,
} from '../transcript/events.js';
import { combine, type CodeGrade, type GradeRecord, type MissingSide } from './grade-record.js';

export interface EvalGraderOptions {
  sandboxes: SandboxProvider;
  folder(rolloutId: string): RolloutFolder;
  /** Absent: what only a judge can say is not graded. */
  judge?: Judge;
  /** @default 'renormalise' */
  missingSide?: MissingSide;
  /** What the judge is shown. `released`: task, rubric and the rubric's files only. @default 'full' */
  slots?: 'full' | 'released';
  /** Of the policy, for the costs in transcripts. */
  price?: Price | null;
}

/** Where a rollout keeps what its grading needs: a copy of the workspace as the agent left it, the transcript, the grade. */
export const gradingFiles = (
  folder: RolloutFolder,
): { workspace: string; transcript: string; grade: string } => ({
  workspace: join(folder.root, 'final-workspace'),
  transcript: join(folder.root, 'transcript.jsonl'),
  grade: join(folder.root, 'grade.json'),
});

/**
 * Grades a run as its task says: code in a sandbox of its own, judge, known answer, or code and judge. Works on a copy of the
 * workspace that is kept, so a grading can be repeated without running the harness again.
 */
export class EvalGrader implements Grader {
  readonly #options: EvalGraderOptions;

  constructor(options: EvalGraderOptions) {
    this.#options = options;
  }

  /** @throws TreewardError VERIFIER_E_NOT_GRADED when there is no number */
  async grade(
    task: Task,
    workspace: string,
    payload: Record<string, unknown>,
    { id, signal }: { id: string; signal?: AbortSignal },
  ): Promise<Grade & { cpuSeconds: number }> {
    const files = gradingFiles(this.#options.folder(id));
    rmSync(files.workspace, { recursive: true, force: true });
    cpSync(workspace, files.workspace, { recursive: true, verbatimSymlinks: true });
    const { record, cpuSeconds } = await this.#grade(task, id, payload, signal);
    if (record.score === null) {
      const { code, message } = record.error ?? {
        code: 'VERIFIER_E_NO_NUMBER',
        message: 'no side gave a number',
      };
      throw new TreewardError('VERIFIER_E_NOT_GRADED', `${task.id}: not graded: ${code}: ${message}`, {
        data: { task: task.id, code },
      });
    }
    return { reward: record.score, scores: record.breakdown, cpuSeconds };
  }

  /** Grades a finished run again from what it kept. Null when it kept too little. */
  async regrade(taskDirectory: string, id: string, signal?: AbortSignal): Promise<GradeRecord | null> {
    const folder = this.#options.folder(id);
    if (!existsSync(gradingFiles(folder).workspace) || !existsSync(folder.telemetry)) return null;
    const { record } = await this.#grade(loadTask(taskDirectory), id, {}, signal);
    return record;
  }

  async #grade(
    task: Task,
    id: string,
    payload: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<{ record: GradeRecord; cpuSeconds: number }> {
    const started = Date.now();
    const written = readMaterialised(task.directory);
    const folder = this.#options.folder(id);
    const files = gradingFiles(folder);
    const episode = readEpisode(folder.root);
    const transcript = transcriptEvents(episode, this.#options.price ?? null);
    writeFileAtomic(files.transcript, transcript.map((event) => `${JSON.stringify(event)}\n`).join(''));

    const { type } = written.grading;
    let cpuSeconds = 0;
    let code: CodeGrade | null = null;
    if (type !== 'judge') {
      if (written.grading.answer) code = answered(written, episode);
      else {
        const full = {
          ...payload,
          task_id: task.id,
          user_query: task.query,
          metadata: task.metadata,
          final_message: finalMessage(episode),
          transcript,
        };
        ({ code, cpuSeconds } = await this.#code(task, written, files.workspace, full, id, signal));
      }
    }
    const judge =
      type === 'automated' ? null : await this.#judge(task, written, files.workspace, transcript, signal);
    const seconds = (Date.now() - started) / 1000;
    const record = combine(
      task.id,
      written.grading,
      { code, judge },
      this.#options.missingSide ?? 'renormalise',
      seconds,
    );
    writeJsonAtomic(files.grade, record);
    return { record, cpuSeconds };
  }

  async #code(
    task: Task,
    { grading }: WrittenTask,
    workspace: string,
    payload: Record<string, unknown>,
    id: string,
    signal?: AbortSignal,
  ): Promise<{ code: CodeGrade; cpuSeconds: number }> {
    const grader = new SandboxGrader(this.#options.sandboxes, { timeout: grading.timeoutMs });
    try {
      const { reward, scores, cpuSeconds } = await grader.grade(task, workspace, payload, {
        id,
        ...(signal && { signal }),
      });
      return {
        cpuSeconds,
        code: { score: reward, scores, rewardKey: scores['reward'] ?? null, error: null },
      };
    } catch (error) {
      signal?.throwIfAborted();
      const { code, message } = toPlainError(error);
      // A sandbox that could not be made is no fault of the checker: the run is tried again.
      if (!code.startsWith('VERIFIER_E')) throw error;
      return { cpuSeconds: 0, code: { score: null, scores: {}, rewardKey: null, error: { code, message } } };
    }
  }

  async #judge(
    task: Task,
    { query, grading, sessions }: WrittenTask,
    workspace: string,
    transcript: readonly TranscriptEvent[],
    signal?: AbortSignal,
  ): Promise<JudgeGrade | null> {
    const { judge, slots = 'full' } = this.#options;
    if (!judge || !grading.rubric) return null;
    const { outputFiles, otherFiles, missing } = await gatherEvidence(
      workspace,
      task.inputFiles,
      grading.rubric,
    );
    const full = slots === 'full';
    return judge.grade({
      tag: task.id,
      rubric: grading.rubric,
      slots: {
        task: sessions ? sessions.map(({ id, prompt }) => `[session ${id}]\n${prompt}`).join('\n\n') : query,
        expectedBehavior: full ? grading.expectedBehavior : '',
        outputFiles,
        otherFiles: full ? otherFiles : [],
        transcript: full ? summariseTranscript(transcript) : null,
      },
      missing,
      ...(signal && { signal }),
    });
  }
}

/** A known answer against what the agent said last. */
function answered({ grading }: WrittenTask, episode: Episode): CodeGrade {
  const { truth, tolerance } = grading.answer!;
  const score = scoreAnswer(truth, finalMessage(episode), tolerance);
  return { score, scores: { answer: score }, rewardKey: null, error: null };
}

/** A finished rollout's grade; null when it was not graded. */
export function readGrade(folder: RolloutFolder): GradeRecord | null {
  const { grade } = gradingFiles(folder);
  return existsSync(grade) ? readJson<GradeRecord>(grade) : null;
}
