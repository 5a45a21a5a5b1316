import { describe, expect, it } from 'vitest';
import { fromPlainError, toPlainError, TreewardError } from './errors.js';

describe('TreewardError', () => {
  it('crosses a boundary as plain data and comes back whole', () => {
    const error = new TreewardError('AREA_E_WHAT', 'file x: no field y', {
      hints: ['write y'],
      data: { file: 'x' },
      cause: new Error('inner'),
    });
    const plain = structuredClone(toPlainError(error));
    expect(plain).toEqual({
      code: 'AREA_E_WHAT',
      message: 'file x: no field y',
      hints: ['write y'],
      data: { file: 'x' },
    });
    const back = fromPlainError(JSON.parse(JSON.stringify(plain)));
    expect(back).toMatchObject({ code: 'AREA_E_WHAT', hints: ['write y'], data: { file: 'x' } });
    expect(TreewardError.isInstance(back)).toBe(true);
  });

  it('has empty hints and data where none were given', () => {
    expect(fromPlainError({ code: 'A_E_B', message: 'm' })).toMatchObject({ hints: [], data: {} });
    expect('cause' in new TreewardError('A_E_B', 'm')).toBe(false);
  });

  it('is known by its mark, not by its class', () => {
    class Copy extends Error {}
    const foreign = Object.defineProperty(new Copy('m'), Symbol.for('treeward.error'), { value: true });
    expect(TreewardError.isInstance(foreign)).toBe(true);
    for (const other of [new Error('m'), null, undefined, 'treeward.error', {}]) {
      expect(TreewardError.isInstance(other)).toBe(false);
    }
  });
});

describe('toPlainError', () => {
  it('takes any thrown value', () => {
    const plain = toPlainError(new RangeError('out'));
    expect(plain.code).toBe('E_UNEXPECTED');
    expect(plain.message).toMatch(/^RangeError: out\n +at /);
    expect(toPlainError('text')).toEqual({ code: 'E_UNEXPECTED', message: 'text' });
    expect(toPlainError(undefined).message).toBe('undefined');
  });
});
