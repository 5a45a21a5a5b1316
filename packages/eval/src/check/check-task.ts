import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { toPlainError } from '@treeward/base';
import { loadTask, SandboxGrader, type Task } from '@treeward/rollout';
import type { SandboxProvider } from '@treeward/sandbox';
import { filesBelow } from '../formats/files-below.js';
import { bytesOf, materialise } from '../formats/materialise.js';
import type { EvalTask } from '../types.js';
import { referencePlay, wrongPlays, type Play } from './play-solution.js';
import { answerLeaks, chanceUse, mentionedPaths, networkUse } from './scan.js';

export interface TaskCheck {
  id: string;
  /** Nothing found that makes the task unfit for training or evaluation. */
  ok: boolean;
  /** Score of the reference solution; null without one, or where the task gives no number. */
  reference: number | null;
  untouched: number | null;
  /** Of a workspace without any file; null also where the checker gives no number then. */
  empty: number | null;
  /** Of the inputs and an empty placeholder for every file that the prompt names: ClawGym demands 0. */
  scaffold: number | null;
  wrong: { name: string; score: number | null; why: string }[];
  /** Sub-scores that are over 0 though nothing was done. */
  vacuous: string[];
  leaks: string[];
  deterministic: boolean;
  network: boolean;
  /** Why it is not ok. */
  problems: string[];
  warnings: string[];
}

interface Graded {
  score: number | null;
  scores: Record<string, number>;
  error: string | null;
}

/** What is prepared once for all gradings of a task. */
interface Bench {
  task: EvalTask;
  loaded: Task;
  scratch: string;
  grade(workspace: string, play?: Play): Promise<Graded>;
  /** A directory with the inputs after `play`. */
  played(play: Play): Promise<string>;
}

let sequence = 0;

/**
 * The acceptance of a task: reference 1, untouched 0, wrong solutions below 1, no vacuous check, no leaked answer, the same score twice,
 * no network. Everything of the task runs in sandboxes. Only its code is checked: what a judge would say is not asked.
 */
export async function checkTask(task: EvalTask, sandboxes: SandboxProvider): Promise<TaskCheck> {
  const scratch = mkdtempSync(join(tmpdir(), 'treeward-check-'));
  try {
    return await checkIn(openBench(task, sandboxes, scratch));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function openBench(task: EvalTask, sandboxes: SandboxProvider, scratch: string): Bench {
  const directory = join(scratch, 'task');
  materialise(task, directory);
  const loaded = loadTask(directory);
  const grader = new SandboxGrader(sandboxes, { timeout: task.grading.timeoutMs });
  const id = (): string => `check-${process.pid}-${sequence++}`;
  return {
    task,
    loaded,
    scratch,
    grade: async (workspace, play) => {
      const payload = {
        task_id: task.id,
        user_query: task.query,
        metadata: task.metadata,
        final_message: play?.finalMessage ?? '',
        transcript: play
          ? [
              {
                type: 'message',
                message: { role: 'assistant', content: [{ type: 'text', text: play.finalMessage }] },
              },
            ]
          : [],
      };
      try {
        const { reward, scores } = await grader.grade(loaded, workspace, payload, { id: id() });
        return { score: reward, scores, error: null };
      } catch (error) {
        const { code, message } = toPlainError(error);
        if (!code.startsWith('VERIFIER_E')) throw error;
        return { score: null, scores: {}, error: `${code}: ${message.split('\n')[0]!.slice(0, 300)}` };
      }
    },
    played: async (play) => {
      const sandbox = await sandboxes.open({
        id: id(),
        ...(loaded.inputFiles && { workspaceFrom: loaded.inputFiles }),
        network: { kind: 'none' },
      });
      try {
        await play.run(sandbox);
        const out = join(scratch, `played-${sequence++}`);
        await sandbox.exportWorkspace(out);
        return out;
      } finally {
        await sandbox.destroy();
      }
    },
  };
}

async function checkIn(bench: Bench): Promise<TaskCheck> {
  const { task, loaded, scratch } = bench;
  const problems: string[] = [];
  const check: TaskCheck = {
    ...{ id: task.id, ok: false, reference: null, untouched: null, empty: null, scaffold: null, wrong: [] },
    ...{
      vacuous: [],
      leaks: [],
      deterministic: true,
      network: false,
      problems,
      warnings: [...task.warnings],
    },
  };
  const uses = networkUse(task);
  check.network = uses.length > 0;
  problems.push(...uses.map((use) => `network: ${use}`));
  check.warnings.push(...chanceUse(task).map((use) => `may change from run to run: ${use}`));

  const blank = join(scratch, 'blank');
  mkdirSync(blank);
  const inputs = loaded.inputFiles ?? blank;
  if (task.grading.type === 'judge' || task.grading.answer)
    check.warnings.push('no code judges it: only its form was checked');
  else {
    const untouched = await bench.grade(inputs);
    check.untouched = untouched.score;
    check.vacuous = Object.entries(untouched.scores).flatMap(([name, score]) => (score > 0 ? [name] : []));
    if (untouched.error) problems.push(`untouched workspace: ${untouched.error}`);
    else if (untouched.score !== 0)
      problems.push(`an untouched workspace scores ${untouched.score}: ${check.vacuous.join(', ')}`);
    same(check, 'untouched workspace', untouched, await bench.grade(inputs));
    await scaffolds(bench, check, blank, inputs);
    await solutions(bench, check, inputs, untouched);
  }
  if (check.leaks.length === 0) check.leaks = answerLeaks(task, new Map());
  problems.push(...check.leaks.map((leak) => `leak: ${leak}`));
  check.ok = problems.length === 0;
  return check;
}

function same(check: TaskCheck, what: string, first: Graded, second: Graded): void {
  if (JSON.stringify([first.score, first.scores]) === JSON.stringify([second.score, second.scores])) return;
  check.deterministic = false;
  const names = Object.keys(first.scores).filter((name) => first.scores[name] !== second.scores[name]);
  check.problems.push(
    `${what}: two gradings differ (${first.score} and ${second.score}${names.length > 0 ? `: ${names.join(', ')}` : ''})`,
  );
}

async function scaffolds(bench: Bench, check: TaskCheck, blank: string, inputs: string): Promise<void> {
  const { task, scratch } = bench;
  const empty = inputs === blank ? null : await bench.grade(blank);
  check.empty = empty ? empty.score : check.untouched;
  if (empty?.error) check.warnings.push(`a workspace without files: ${empty.error}`);
  const scaffold = join(scratch, 'scaffold');
  for (const file of task.files) put(join(scaffold, file.path), bytesOf(file));
  let placeholders = 0;
  for (const path of mentionedPaths(task.query)) {
    if (existsSync(join(scaffold, path))) continue;
    try {
      put(join(scaffold, path), Buffer.from('placeholder\n'));
      placeholders++;
    } catch {
      // The word only looked like a path: something else is there under a part of it.
    }
  }
  if (placeholders === 0) {
    check.scaffold = check.untouched;
    return;
  }
  const graded = await bench.grade(scaffold);
  check.scaffold = graded.score;
  const names = Object.entries(graded.scores).flatMap(([name, score]) => (score > 0 ? [name] : []));
  if (names.length > 0) check.warnings.push(`placeholder files score ${graded.score}: ${names.join(', ')}`);
}

async function solutions(bench: Bench, check: TaskCheck, inputs: string, untouched: Graded): Promise<void> {
  const { task } = bench;
  const reference = referencePlay(task);
  if (reference) {
    try {
      const workspace = await bench.played(reference);
      const graded = await bench.grade(workspace, reference);
      check.reference = graded.score;
      if (graded.error) check.problems.push(`reference solution: ${graded.error}`);
      else if (graded.score !== 1) {
        const low = Object.entries(graded.scores).flatMap(([name, score]) => (score < 1 ? [name] : []));
        check.problems.push(`the reference solution scores ${graded.score}: ${low.join(', ')}`);
      }
      same(check, 'reference solution', graded, await bench.grade(workspace, reference));
      const idle = Object.keys(graded.scores).filter(
        (name) => untouched.scores[name] !== undefined && untouched.scores[name] === graded.scores[name],
      );
      if (idle.length > 0) check.warnings.push(`the reference changes nothing in: ${idle.join(', ')}`);
      check.leaks = answerLeaks(task, made(workspace, inputs));
    } catch (error) {
      check.problems.push(`reference solution: ${toPlainError(error).message.split('\n')[0]}`);
    }
  }
  for (const play of wrongPlays(task)) {
    try {
      const { score, error } = await bench.grade(await bench.played(play), play);
      check.wrong.push({ name: play.name, score, why: play.why });
      if (error) check.problems.push(`wrong solution ${play.name}: ${error}`);
      else if (score !== null && score >= 1)
        check.problems.push(`the wrong solution ${play.name} scores ${score}`);
    } catch (error) {
      check.wrong.push({ name: play.name, score: null, why: play.why });
      check.problems.push(`wrong solution ${play.name}: ${toPlainError(error).message.split('\n')[0]}`);
    }
  }
}

/** Files that are new or otherwise than before. */
function made(workspace: string, inputs: string): Map<string, Buffer> {
  const before = new Map(filesBelow(inputs).map((file) => [file.path, bytesOf(file)]));
  return new Map(
    filesBelow(workspace).flatMap((file): [string, Buffer][] => {
      const bytes = bytesOf(file);
      return before.get(file.path)?.equals(bytes) || bytes.length > 1_000_000 ? [] : [[file.path, bytes]];
    }),
  );
}

function put(path: string, bytes: Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}
