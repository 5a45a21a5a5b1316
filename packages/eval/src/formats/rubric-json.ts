import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import type { Criterion, Rubric } from '../types.js';

const rule = z.object({
  name: z.string().min(1),
  file_path: z.string().nullish(),
  scores: z.record(z.string(), z.string()),
});

const rubric = z.union([
  z.object({ skip_rubric: z.literal(true) }),
  z.object({ rules: z.array(rule).min(1), score_options: z.array(z.number()).nullish() }),
  z.array(rule).min(1),
]);

/**
 * ClawGym's rubric: rules with a text for each score, unweighted. Null for none, and where the task says to skip it.
 * @throws TreewardError TASK_E_RUBRIC naming file and field
 */
export function parseRubricJson(value: unknown, file: string): Rubric | null {
  if (value === null || value === undefined) return null;
  const parsed = rubric.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new TreewardError('TASK_E_RUBRIC', `${file}: the rubric is not one: ${issue.message}`, {
      data: { file, field: issue.path.join('.') },
      hints: ['expected {"rules": [{"name", "file_path", "scores": {"0": "…", "0.5": "…", "1": "…"}}]}'],
    });
  }
  const found = parsed.data;
  if ('skip_rubric' in found) return null;
  const rules = Array.isArray(found) ? found : found.rules;
  const criteria = rules.map((each) => criterionOf(each, file));
  const names = new Set(criteria.map(({ name }) => name));
  if (names.size !== criteria.length) {
    throw new TreewardError('TASK_E_RUBRIC', `${file}: two rules of the rubric have one name`, {
      data: { file, field: 'rules' },
    });
  }
  return { criteria, source: JSON.stringify(value), groups: null };
}

function criterionOf({ name, file_path: filePath, scores }: z.infer<typeof rule>, file: string): Criterion {
  const anchors = Object.keys(scores)
    .map(Number)
    .sort((a, b) => a - b);
  if (anchors.length < 2 || !anchors.every((score) => score >= 0 && score <= 1)) {
    throw new TreewardError(
      'TASK_E_RUBRIC',
      `${file}: rule ${name}: scores need at least two keys in [0,1]`,
      {
        data: { file, field: `rules.${name}.scores` },
      },
    );
  }
  const text = Object.entries(scores)
    .sort(([a], [b]) => Number(b) - Number(a))
    .map(([score, said]) => `${score}: ${said}`)
    .join('\n');
  return { name, text, anchors, weight: 1, filePath: filePath ?? null };
}
