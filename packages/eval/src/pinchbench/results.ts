import { createHash, randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeJsonAtomic, type RunFolder } from '@treeward/base';
import type { WrittenTask } from '../formats/materialise.js';
import { gradingFiles, readGrade } from '../grade/eval-grader.js';
import type { GradeRecord } from '../grade/grade-record.js';
import type { EvaluationSummary, RunOutcome, TaskOutcome } from '../run/summary.js';
import { mean, sampleVariance } from '../statistics/mean.js';

interface GradeResult {
  task_id: string;
  score: number;
  max_score: 1;
  grading_type: string;
  breakdown: Record<string, number>;
  notes: string;
}

const TYPE = { automated: 'automated', judge: 'llm_judge', hybrid: 'hybrid' } as const;

/**
 * Writes an evaluation in PinchBench's own files below `<out>/pinchbench/`: `<run_id>_<model>.json`, the transcripts of each task's
 * first run, and the body of an upload (nothing is uploaded). A run without a grade is in none of the numbers: its task has fewer
 * runs, and a task without any has none and a maximum of 0.
 */
export function writePinchbenchResults(
  out: RunFolder,
  summary: EvaluationSummary,
  tasks: ReadonlyMap<string, WrittenTask>,
): { results: string; upload: string } {
  const directory = join(out.root, 'pinchbench');
  const runId = createHash('sha256').update(JSON.stringify(summary.identity)).digest('hex').slice(0, 8);
  const slug = summary.identity.label.toLowerCase().replace(/[^a-z0-9.]+/g, '-');
  const entries = summary.tasks.map((task) => entryOf(out, task, tasks.get(task.id)));
  const results = {
    model: summary.identity.label,
    benchmark_version: summary.set.version ?? '',
    run_id: runId,
    timestamp: Date.now() / 1000,
    suite: summary.identity.suite,
    runs_per_task: summary.runsPerTask,
    harness: { name: summary.identity.harness, version: summary.harnessVersion },
    ...(!summary.complete && {
      in_progress: true,
      completed_tasks: entries.filter(({ grading }) => grading.runs.length > 0).length,
      total_tasks: summary.tasks.length + summary.problems.length,
      partial: summary.note,
    }),
    tasks: entries,
    category_scores: categoryScores(entries),
    efficiency: efficiency(entries),
  };
  const file = join(directory, `${runId}_${slug}.json`);
  writeJsonAtomic(file, results);
  const transcripts = join(directory, `${runId}_transcripts`);
  mkdirSync(transcripts, { recursive: true });
  for (const task of summary.tasks) {
    const first = task.runs[0];
    const from = first && gradingFiles(out.rollout(first.rolloutId)).transcript;
    if (from && existsSync(from)) copyFileSync(from, join(transcripts, `${task.id}.jsonl`));
  }
  const upload = join(directory, `${runId}_upload.json`);
  writeJsonAtomic(upload, uploadBody(results, summary, entries));
  return { results: file, upload };
}

type Entry = ReturnType<typeof entryOf>;

function entryOf(out: RunFolder, task: TaskOutcome, written: WrittenTask | undefined) {
  const runs = task.runs.flatMap((run): GradeResult[] => {
    const grade = readGrade(out.rollout(run.rolloutId));
    return run.score === null ? [] : [gradeResult(task, run.score, grade)];
  });
  const scores = runs.map(({ score }) => score);
  const errors = task.runs.flatMap(({ score, fault, run }) =>
    score === null ? [{ run: run + 1, ...fault }] : [],
  );
  const first = task.runs[0];
  const transcript = first && gradingFiles(out.rollout(first.rolloutId)).transcript;
  return {
    task_id: task.id,
    status: worst(task.runs),
    timed_out: task.runs.some(({ status }) => status === 'timeout'),
    execution_time: task.runs.reduce((sum, { seconds }) => sum + seconds, 0),
    transcript_length:
      transcript && existsSync(transcript) ? readFileSync(transcript, 'utf8').split('\n').length - 1 : 0,
    usage: usageOf(task.runs),
    workspace: first ? gradingFiles(out.rollout(first.rolloutId)).workspace : '',
    grading: {
      runs,
      mean: scores.length > 0 ? mean(scores) : 0,
      std: Math.sqrt(sampleVariance(scores)),
      min: scores.length > 0 ? Math.min(...scores) : 0,
      max: scores.length > 0 ? Math.max(...scores) : 0,
      ...(errors.length > 0 && { grading_errors: errors }),
    },
    frontmatter: (written?.metadata['frontmatter'] ?? {
      id: task.id,
      name: task.name,
      category: task.category,
    }) as Record<string, unknown>,
    category: task.category,
  };
}

const gradeResult = (task: TaskOutcome, score: number, grade: GradeRecord | null): GradeResult => ({
  task_id: task.id,
  score,
  max_score: 1,
  grading_type: TYPE[task.type],
  breakdown: grade?.breakdown ?? {},
  notes: grade?.notes ?? '',
});

function worst(runs: readonly RunOutcome[]): RunOutcome['status'] {
  const all = new Set(runs.map(({ status }) => status));
  return all.size === 0 || all.has('error') ? 'error' : all.has('timeout') ? 'timeout' : 'success';
}

function usageOf(runs: readonly RunOutcome[]) {
  const sum = (value: (run: RunOutcome) => number): number => runs.reduce((all, run) => all + value(run), 0);
  const input = sum(({ promptTokens }) => promptTokens);
  const output = sum(({ sampledTokens }) => sampledTokens);
  return {
    input_tokens: input,
    output_tokens: output,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    total_tokens: input + output,
    cost_usd: sum(({ policyUsd }) => policyUsd),
    request_count: sum(({ calls }) => calls),
  };
}

function categoryScores(entries: readonly Entry[]) {
  const names = [...new Set(entries.map(({ category }) => category))];
  return Object.fromEntries(
    names.map((name) => {
      const graded = entries.filter(({ category, grading }) => category === name && grading.runs.length > 0);
      const score = graded.reduce((sum, { grading }) => sum + grading.mean, 0);
      const pct = graded.length === 0 ? 0 : (score / graded.length) * 100;
      return [name.toUpperCase(), { score, max_score: graded.length, pct, task_count: graded.length }];
    }),
  );
}

function efficiency(entries: readonly Entry[]) {
  const sum = (value: (entry: Entry) => number): number =>
    entries.reduce((all, entry) => all + value(entry), 0);
  const tokens = sum(({ usage }) => usage.total_tokens);
  const cost = sum(({ usage }) => usage.cost_usd);
  const score = sum(({ grading }) => grading.mean);
  return {
    total_tokens: tokens,
    total_input_tokens: sum(({ usage }) => usage.input_tokens),
    total_output_tokens: sum(({ usage }) => usage.output_tokens),
    total_requests: sum(({ usage }) => usage.request_count),
    total_cost_usd: cost,
    total_execution_time_seconds: sum(({ execution_time: seconds }) => seconds),
    tokens_per_task: entries.length > 0 ? tokens / entries.length : 0,
    score_per_1k_tokens: tokens > 0 ? score / (tokens / 1000) : 0,
    score_per_dollar: cost > 0 ? score / cost : null,
    per_task: entries.map(({ task_id: id, grading, usage }) => ({
      task_id: id,
      score: grading.mean,
      total_tokens: usage.total_tokens,
      cost_usd: usage.cost_usd,
      tokens_per_score_point: grading.mean > 0 ? usage.total_tokens / grading.mean : null,
    })),
  };
}

function uploadBody(
  results: {
    model: string;
    benchmark_version: string;
    run_id: string;
    timestamp: number;
    category_scores: unknown;
  },
  { identity, harnessVersion }: EvaluationSummary,
  entries: readonly Entry[],
) {
  const graded = entries.filter(({ grading }) => grading.runs.length > 0);
  const round = (value: number): number => Number(value.toFixed(6));
  const sum = (value: (entry: Entry) => number): number =>
    entries.reduce((all, entry) => all + value(entry), 0);
  return {
    submission_id: randomUUID(),
    timestamp: new Date(results.timestamp * 1000).toISOString().replace(/\.\d+Z$/, 'Z'),
    client_version: 'treeward',
    benchmark_version: results.benchmark_version,
    model: results.model,
    provider: results.model.includes('/') ? results.model.split('/')[0] : '',
    run_id: results.run_id,
    openclaw_version: identity.harness.startsWith('openclaw') ? harnessVersion : null,
    total_score: round(graded.reduce((all, { grading }) => all + grading.mean, 0)),
    max_score: graded.length,
    total_execution_time_seconds: round(sum(({ execution_time: seconds }) => seconds)),
    total_cost_usd: round(sum(({ usage }) => usage.cost_usd)),
    tasks: entries.map(
      ({ task_id: id, grading, timed_out: timedOut, execution_time: seconds, frontmatter }) => ({
        task_id: id,
        score: grading.mean,
        max_score: grading.runs.length > 0 ? 1 : 0,
        grading_type: grading.runs[0]?.grading_type ?? null,
        timed_out: timedOut,
        execution_time_seconds: seconds,
        breakdown: grading.runs[0]?.breakdown ?? {},
        notes: grading.runs[0]?.notes ?? '',
        frontmatter,
      }),
    ),
    usage_summary: {
      total_input_tokens: sum(({ usage }) => usage.input_tokens),
      total_output_tokens: sum(({ usage }) => usage.output_tokens),
      total_requests: sum(({ usage }) => usage.request_count),
      total_cost_usd: round(sum(({ usage }) => usage.cost_usd)),
    },
    metadata: { suite: identity.suite, harness: identity.harness, harness_version: harnessVersion },
    category_scores: results.category_scores,
  };
}
