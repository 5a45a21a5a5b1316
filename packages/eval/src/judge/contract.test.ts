import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TreewardError } from '@treeward/base';
import type { Criterion } from '../types.js';
import { codeOf } from '../testing/tasks.js';
import { parseVerdict } from './contract.js';

const criterion = (anchors: number[] | null): Criterion => ({
  name: 'c',
  text: 'c',
  anchors,
  weight: 1,
  filePath: null,
});
const criteria = [criterion([0, 0.5, 1]), criterion(null)];
const verdict = '{"scores": {"criterion_1": 0.5, "criterion_2": 0.33}, "notes": "fine"}';

describe('parseVerdict', () => {
  it.each([
    ['alone', verdict],
    ['after analysis that has braces and other objects', `I see {"a": 1} and { broken.\nSo:\n${verdict}`],
    ['in a fence', `Well.\n\`\`\`json\n${verdict}\n\`\`\``],
    ['with braces in its notes', verdict.replace('fine', 'a } and { b')],
  ])('takes the object %s', (_, reply) => {
    expect(parseVerdict(reply, criteria).scores).toEqual([0.5, 0.33]);
  });

  it.each([
    ['nothing', ''],
    ['prose', 'Total: 0.72'],
    ['another field name (criteria_scores)', verdict.replace('scores', 'criteria_scores')],
    ['a score and justification', '{"score": 0.9, "justification": "good"}'],
    ['a total beside the scores', verdict.replace('"notes"', '"total": 3.85, "notes"')],
    ['no notes', '{"scores": {"criterion_1": 0.5, "criterion_2": 0.3}}'],
    ['a missing criterion', '{"scores": {"criterion_1": 0.5}, "notes": ""}'],
    ['a criterion too many', verdict.replace('"criterion_2"', '"criterion_3": 1, "criterion_2"')],
    ['its own names', verdict.replace('criterion_1', 'clarity')],
    ['a score that is no anchor', verdict.replace('0.5', '0.6')],
    ['a score over 1', verdict.replace('0.33', '1.2')],
    ['a negative score', verdict.replace('0.33', '-0.1')],
    ['a score as text', verdict.replace('0.33', '"0.33"')],
    ['a nested score', verdict.replace('0.33', '{"score": 0.3}')],
    ['NaN', verdict.replace('0.33', 'NaN')],
    ['null', verdict.replace('0.33', 'null')],
    ['two verdicts', `${verdict}\n${verdict}`],
    ['something after the object', `${verdict}\nI hope this helps.`],
    ['a list of scores', '{"scores": [0.5, 0.3], "notes": ""}'],
    ['a cut object', verdict.slice(0, -3)],
  ])('refuses %s', (_, reply) => {
    expect(codeOf(() => parseVerdict(reply, criteria))).toBe('JUDGE_E_CONTRACT');
  });

  it('whatever is said: allowed scores, or an error of ours', () => {
    const part = fc.constantFrom(
      '{',
      '}',
      '"scores"',
      ':',
      '"notes"',
      '""',
      ',',
      '"criterion_1"',
      '"criterion_2"',
      '0.5',
      '1',
      '7',
      '\\',
      '"',
      'x',
      '\n',
      '```',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 25 }), (parts) => {
        try {
          const { scores } = parseVerdict(parts.join(''), criteria);
          expect([0, 0.5, 1]).toContain(scores[0]);
          expect(scores[1]).toBeGreaterThanOrEqual(0);
          expect(scores[1]).toBeLessThanOrEqual(1);
        } catch (error) {
          if (!TreewardError.isInstance(error)) throw error;
          expect(error.code).toBe('JUDGE_E_CONTRACT');
        }
      }),
      { numRuns: 500 },
    );
  });
});
