import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import { readText } from '../formats/read-text.js';
import type { EvalTask } from '../types.js';

const manifestSchema = z.looseObject({
  run_first: z.array(z.string()).nullish(),
  core: z.array(z.string()).nullish(),
  /** Before 2.0: the order of all tasks. */
  tasks: z.array(z.string()).nullish(),
  categories: z.record(z.string(), z.array(z.string())).nullish(),
});

export interface Manifest {
  order: string[];
  /** Ids of the tasks that say whether anything works at all. */
  runFirst: string[];
  core: string[];
  /** Task id → category; wins over the front matter. */
  categories: Map<string, string>;
}

/** `manifest.yaml` in the tasks' folder or above it; null where there is none. @throws TreewardError TASK_E_MANIFEST */
export function readManifest(folders: readonly string[]): Manifest | null {
  const file = folders.map((folder) => join(folder, 'manifest.yaml')).find((path) => existsSync(path));
  if (file === undefined) return null;
  let value: unknown;
  try {
    value = parse(readText(file));
  } catch (cause) {
    throw new TreewardError('TASK_E_MANIFEST', `${file}: ${(cause as Error).message.split('\n')[0]}`, {
      cause,
      data: { file },
    });
  }
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new TreewardError('TASK_E_MANIFEST', `${file}: field ${issue.path.join('.')}: ${issue.message}`, {
      data: { file, field: issue.path.join('.') },
    });
  }
  const { run_first: first, core, tasks, categories } = parsed.data;
  const listed = Object.entries(categories ?? {}).flatMap(([category, ids]) =>
    ids.map((id) => [id, category] as const),
  );
  return {
    order: [...new Set([...(first ?? []), ...(tasks ?? []), ...listed.map(([id]) => id)])],
    runFirst: first ?? [],
    core: core ?? [],
    categories: new Map(listed),
  };
}

/** `task_00_sanity` and `task_sanity` are one task: 2.0 dropped the numbers. */
export const stem = (id: string): string => id.replace(/^task_/, '').replace(/^\d+_/, '');

/**
 * The 30 tasks of ClawGym II, by stem: the 35 released on 2026-04-10 without the two image tasks and the three whose input is a
 * PDF. Which five the paper left out is an inference (it says "without multimodal ones").
 */
export const CLAWGYM30: readonly string[] = [
  ...[
    'sanity',
    'calendar',
    'stock',
    'blog',
    'weather',
    'summary',
    'events',
    'email',
    'memory',
    'files',
    'workflow',
  ],
  ...[
    'clawdhub',
    'skill_search',
    'humanizer',
    'daily_summary',
    'email_triage',
    'email_search',
    'market_research',
  ],
  ...['spreadsheet_summary', 'second_brain', 'polymarket_briefing', 'access_log_anomaly', 'playwright_e2e'],
  ...['executive_lookup', 'financial_ratio_calculation', 'earnings_analysis', 'todo_list_cleanup'],
  ...['email_reply_drafting', 'shell_command_generator', 'git_rescue_recovery'],
];

export interface Selection {
  tasks: EvalTask[];
  /** False when tasks of the suite are missing, or when the suite is a part by nature. */
  complete: boolean;
  note: string | null;
}

/**
 * Tasks of a suite: `all`, `automated-only`, `core`, `frozen` (neither live nor quarantined), `pinchbench-clawgym30`, a category, or ids
 * with commas. Only `all`, `core` and `pinchbench-clawgym30` can be complete: an overall score of anything else is called partial.
 * @throws TreewardError TASK_E_SUITE when it names nothing
 */
export function selectSuite(
  tasks: readonly EvalTask[],
  suite: string,
  manifest: Manifest | null = null,
): Selection {
  const part = (chosen: EvalTask[], note: string | null = null): Selection => ({
    tasks: chosen,
    complete: false,
    note,
  });
  const listed = (ids: readonly string[], key: (id: string) => string, note: string | null): Selection => {
    const byKey = new Map(tasks.map((task) => [key(task.id), task]));
    const chosen = ids.flatMap((id) => byKey.get(key(id)) ?? []);
    const missing = ids.filter((id) => !byKey.has(key(id)));
    const lacks =
      missing.length > 0
        ? `${missing.length} of its ${ids.length} tasks are not there: ${missing.join(', ')}`
        : null;
    return {
      tasks: chosen,
      complete: missing.length === 0,
      note: [note, lacks].filter(Boolean).join('; ') || null,
    };
  };
  const chosen = ((): Selection => {
    if (suite === 'all') return { tasks: [...tasks], complete: true, note: null };
    if (suite === 'automated-only') return part(tasks.filter(({ grading }) => grading.type === 'automated'));
    if (suite === 'frozen')
      return part(tasks.filter(({ live, quarantined }) => !live && quarantined === null));
    if (suite === 'core' && manifest && manifest.core.length > 0)
      return listed(manifest.core, (id) => id, null);
    if (suite === 'pinchbench-clawgym30')
      return listed(CLAWGYM30, stem, 'which 30 tasks the paper used is an inference');
    const ofCategory = tasks.filter(({ category }) => category === suite);
    if (ofCategory.length > 0) return part(ofCategory);
    const ids = suite
      .split(',')
      .map((id) => id.trim())
      .filter(Boolean);
    return { ...listed(ids, (id) => id, null), complete: false };
  })();
  if (chosen.tasks.length === 0) {
    const categories = [...new Set(tasks.map(({ category }) => category))].filter(Boolean);
    throw new TreewardError('TASK_E_SUITE', `the suite "${suite}" has none of the ${tasks.length} tasks`, {
      data: { suite },
      hints: [
        'all, automated-only, core, frozen, pinchbench-clawgym30, ids with commas',
        `categories: ${categories.join(', ')}`,
      ],
    });
  }
  return chosen;
}
