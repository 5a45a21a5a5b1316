import { TreewardError } from '@treeward/base';
import type { Criterion } from '../types.js';

/** Changes whenever the prompt or the reading of a reply does: part of the cache's key. */
export const CONTRACT_VERSION = 1;

export interface Verdict {
  /** One per criterion, in order. */
  scores: number[];
  notes: string;
}

const invalid = (what: string): TreewardError =>
  new TreewardError('JUDGE_E_CONTRACT', `the judge's reply ${what}`);

/**
 * Reads a judge's reply: free analysis, then exactly one final JSON object `{"scores": {"criterion_1": …}, "notes": "…"}` whose scores
 * are allowed ones. Nothing is guessed: another field name, a missing criterion, a second object, a total are all invalid.
 * @throws TreewardError JUDGE_E_CONTRACT saying what is wrong
 */
export function parseVerdict(reply: string, criteria: readonly Criterion[]): Verdict {
  const text = reply.trim().replace(/\s*```\s*$/, '');
  const objects = topLevelObjects(text).flatMap(({ start, end }) => {
    try {
      return [{ end, value: JSON.parse(text.slice(start, end)) as Record<string, unknown> }];
    } catch {
      return [];
    }
  });
  const verdicts = objects.filter(({ value }) => 'scores' in value);
  if (verdicts.length === 0) throw invalid('has no JSON object with "scores"');
  if (verdicts.length > 1)
    throw invalid(`has ${verdicts.length} JSON objects with "scores"; exactly one is allowed`);
  const { end, value } = verdicts[0]!;
  if (text.slice(end).trim() !== '') throw invalid('does not end with its JSON object');
  const extra = Object.keys(value).filter((key) => key !== 'scores' && key !== 'notes');
  if (extra.length > 0) throw invalid(`has the key ${JSON.stringify(extra[0])} beside "scores" and "notes"`);
  const { scores, notes } = value;
  if (typeof notes !== 'string') throw invalid('has no text "notes"');
  if (typeof scores !== 'object' || scores === null || Array.isArray(scores))
    throw invalid('has no object "scores"');
  const given = scores as Record<string, unknown>;
  const names = criteria.map((_, index) => `criterion_${index + 1}`);
  const unknown = Object.keys(given).find((key) => !names.includes(key));
  if (unknown !== undefined) throw invalid(`scores ${JSON.stringify(unknown)}, which is no criterion`);
  return { notes, scores: names.map((name, index) => scoreOf(given[name], name, criteria[index]!)) };
}

function scoreOf(score: unknown, name: string, { anchors }: Criterion): number {
  if (typeof score !== 'number' || !Number.isFinite(score)) throw invalid(`has no number for ${name}`);
  if (anchors === null) {
    if (score < 0 || score > 1) throw invalid(`scores ${name} with ${score}, outside [0,1]`);
    return score;
  }
  const anchor = anchors.find((allowed) => Math.abs(allowed - score) < 1e-9);
  if (anchor === undefined) throw invalid(`scores ${name} with ${score}; allowed are ${anchors.join(', ')}`);
  return anchor;
}

/** Places of balanced `{…}` that stand in no other, strings minded. */
function topLevelObjects(text: string): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = [];
  for (let at = text.indexOf('{'); at >= 0; at = text.indexOf('{', at)) {
    const end = endOfObject(text, at);
    if (end === null) at += 1;
    else {
      found.push({ start: at, end });
      at = end;
    }
  }
  return found;
}

function endOfObject(text: string, start: number): number | null {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === '\\') at++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{') depth++;
    else if (char === '}' && --depth === 0) return at + 1;
  }
  return null;
}
