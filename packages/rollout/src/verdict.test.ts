import { describe, expect, it } from 'vitest';
import { TreewardError } from '@treeward/base';
import { parseVerdict } from './verdict.js';

describe('parseVerdict', () => {
  it('takes the last line as the reward and a JSON line as the sub-scores', () => {
    expect(
      parseVerdict('looking\n{"exists": 1, "clean": 0.5, "ok": true, "note": "x"}\n0.75\n\n', 'c'),
    ).toEqual({
      reward: 0.75,
      scores: { exists: 1, clean: 0.5, ok: 1 },
      candidates: [0.75],
    });
  });

  it.each([
    ['', 'VERIFIER_E_NO_NUMBER'],
    ['done', 'VERIFIER_E_NO_NUMBER'],
    ['0.5\nthanks', 'VERIFIER_E_NO_NUMBER'],
    ['NaN', 'VERIFIER_E_NO_NUMBER'],
    ['Infinity', 'VERIFIER_E_NO_NUMBER'],
    ['1.5', 'VERIFIER_E_RANGE'],
    ['-0.1', 'VERIFIER_E_RANGE'],
  ])('never makes a reward of %j', (stdout, code) => {
    let caught: unknown;
    try {
      parseVerdict(stdout, 'reward.sh');
    } catch (error) {
      caught = error;
    }
    expect(TreewardError.isInstance(caught) && caught.code).toBe(code);
    expect((caught as Error).message).toContain('reward.sh');
  });
});
