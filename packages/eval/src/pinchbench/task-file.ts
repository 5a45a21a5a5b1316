import { existsSync, lstatSync } from 'node:fs';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { callingGrade, noCode } from '../formats/checker-scripts.js';
import { filesBelow } from '../formats/files-below.js';
import { readText } from '../formats/read-text.js';
import { safePath } from '../formats/safe-path.js';
import { rewritePaths } from '../formats/workspace-paths.js';
import type { EvalTask, TaskFile, TaskSession } from '../types.js';
import { parseFrontMatter, type FrontMatter } from './front-matter.js';
import { parseRubric } from './rubric.js';
import { checklist, parseSections, pythonBlock } from './sections.js';

export interface PinchbenchOptions {
  /** Where fixtures lie. */
  assets: string;
  /** Cut sections and code exactly where the original does, fences or not. @default false */
  strict?: boolean;
}

const TYPES = { automated: 'automated', llm_judge: 'judge', hybrid: 'hybrid' } as const;

/**
 * Reads one `task_*.md`.
 * @throws TreewardError TASK_E_FRONT_MATTER, TASK_E_PROMPT, TASK_E_CHECKS, TASK_E_RUBRIC, TASK_E_FIXTURE, TASK_E_PATH, TASK_E_FILE,
 * TASK_E_HUGE, TASK_E_ENCODING
 */
export function loadPinchbenchTask(file: string, options: PinchbenchOptions): EvalTask {
  const { meta, body } = parseFrontMatter(readText(file).replace(/^\s*\n/, ''), file);
  const strict = options.strict ?? false;
  const sections = parseSections(body, { strict });
  const checks = checklist(sections.get('Grading Criteria') ?? '');
  const type = TYPES[meta.grading_type ?? 'automated'];
  const fail = (code: string, field: string, what: string): TreewardError =>
    new TreewardError(code, `${file}: ${what}`, { data: { file, field } });

  const sessions = sessionsOf(meta);
  const prompt = (sessions?.[0]?.prompt ?? sections.get('Prompt') ?? '').trim();
  if (prompt === '') throw fail('TASK_E_PROMPT', 'Prompt', 'the section "## Prompt" is missing or empty');
  const code = type === 'judge' ? null : pythonBlock(sections.get('Automated Checks') ?? '', { strict });
  if (type !== 'judge' && (code === null || !/^\s*def\s+grade\s*\(/m.test(code))) {
    throw fail(
      'TASK_E_CHECKS',
      'Automated Checks',
      `a ${type} task needs a python block that defines grade()`,
    );
  }
  const rubric = type === 'automated' ? null : parseRubric(sections.get('LLM Judge Rubric') ?? null, checks);
  if (type !== 'automated' && rubric === null) {
    throw fail('TASK_E_RUBRIC', 'LLM Judge Rubric', `a ${type} task needs a rubric or grading criteria`);
  }
  const { automated, llm_judge: judge } = meta.grading_weights ?? {};
  const weights = { automated: automated ?? 0.5, judge: judge ?? 0.5 };
  if (weights.automated + weights.judge <= 0) Object.assign(weights, { automated: 0.5, judge: 0.5 });
  return {
    id: meta.id,
    name: meta.name ?? meta.id,
    format: 'pinchbench',
    category: meta.category ?? '',
    query: rewritePaths(prompt).text,
    sessions: sessions && sessions.length > 1 ? sessions : null,
    timeoutSeconds: meta.timeout_seconds ?? 120,
    files: fixtures(meta, file, options.assets),
    grading: {
      type,
      weights,
      reward:
        code === null
          ? noCode('this task has only a rubric: run it by `treeward eval pinchbench`')
          : callingGrade(code),
      rubric,
      expectedBehavior: sections.get('Expected Behavior') ?? '',
      answer: null,
      timeoutMs: 120_000,
    },
    live: meta.live ?? false,
    quarantined: meta.quarantined ?? null,
    metadata: { frontmatter: meta, criteria: checks },
    mcp: null,
    source: file,
    warnings: [],
  };
}

function sessionsOf(meta: FrontMatter): TaskSession[] | null {
  if (!meta.sessions || meta.sessions.length === 0) return null;
  return meta.sessions.map((session, index) => {
    const given = typeof session === 'string' ? { prompt: session } : session;
    const prompt = given.prompt ?? (given as { message?: string }).message ?? '';
    return {
      id: (given as { id?: string | null }).id ?? `session-${index + 1}`,
      prompt: rewritePaths(prompt).text.trim(),
      newSession: index > 0 && (given as { new_session?: boolean | null }).new_session === true,
    };
  });
}

function fixtures(meta: FrontMatter, file: string, assets: string): TaskFile[] {
  return (meta.workspace_files ?? []).flatMap((entry): TaskFile[] => {
    if ('path' in entry) return [{ path: safePath(entry.path, file), content: entry.content }];
    const from = join(assets, safePath(entry.source, file));
    const dest = safePath(entry.dest, file);
    if (!existsSync(from)) {
      throw new TreewardError(
        'TASK_E_FIXTURE',
        `${file}: the fixture ${entry.source} is missing below ${assets}`,
        {
          data: { file, field: 'workspace_files', fixture: from },
          hints: ['large fixtures may lie in Git LFS: fetch them'],
        },
      );
    }
    return lstatSync(from).isDirectory() ? filesBelow(from, `${dest}/`) : [{ path: dest, content: { from } }];
  });
}
