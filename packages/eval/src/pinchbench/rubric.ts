import type { Criterion, Rubric } from '../types.js';

const HEADING =
  /^#{3,}\s*(?:Criterion\s+\d+\s*[:.–-]\s*)?(.+?)\s*(?:\((?:Weight:\s*)?(\d+(?:\.\d+)?)\s*%\))\s*$/i;
const PLAIN = /^#{3,}\s*Criterion\s+\d+\s*[:.–-]\s*(.+?)\s*$/i;
const SCORE = /^\s*(?:[-*]\s*)?\*\*\s*(?:Score\s+)?(\d(?:\.\d+)?)\s*(?:\*\*\s*:|:\s*\*\*|\*\*)/i;

/**
 * The judge's criteria of a PinchBench task: headings `### Criterion n: name (Weight: x%)` with `**Score s**` texts below. A
 * rubric without such headings is one criterion; without a rubric each item of the check list is one.
 */
export function parseRubric(rubric: string | null, checks: readonly string[]): Rubric | null {
  if (rubric !== null && rubric.trim() !== '') {
    const criteria = criteriaOf(rubric);
    return {
      criteria: criteria.length > 0 ? criteria : [whole('rubric', rubric)],
      source: rubric,
      groups: null,
    };
  }
  if (checks.length === 0) return null;
  return {
    criteria: checks.map((check) => whole(check, check)),
    source: checks.map((c) => `- ${c}`).join('\n'),
    groups: null,
  };
}

const whole = (name: string, text: string): Criterion => ({
  name,
  text,
  anchors: null,
  weight: 1,
  filePath: null,
});

function criteriaOf(rubric: string): Criterion[] {
  const lines = rubric.split('\n');
  const heads = lines.flatMap((line, at) => {
    const [, name, percent] = HEADING.exec(line) ?? PLAIN.exec(line) ?? [];
    return name === undefined
      ? []
      : [{ at, name, weight: percent === undefined ? null : Number(percent) / 100 }];
  });
  return heads.map(({ at, name, weight }, index) => {
    const body = lines.slice(at + 1, heads[index + 1]?.at);
    const scores = body.flatMap((line) => {
      const score = SCORE.exec(line)?.[1];
      return score === undefined ? [] : [Number(score)];
    });
    const anchors = [...new Set(scores)].filter((score) => score <= 1).sort((a, b) => a - b);
    return {
      name,
      text: body.join('\n').trim() || name,
      anchors: anchors.length >= 2 ? anchors : null,
      weight: weight ?? 1,
      filePath: null,
    };
  });
}
