import { describe, expect, it } from 'vitest';
import { assertModelWasThere } from './own-limits.js';
import type { ModelHealth } from './types.js';

const model = (awayMs: number, answers: boolean): ModelHealth => ({
  lost: new AbortController().signal,
  awayMs: () => awayMs,
  answers: async () => answers,
});

describe('time that ran out', () => {
  it.each([
    ['while the model was away', 700, true, 0, 'ENGINE_E_AWAY'],
    ['on a call that nobody answers', 500, false, 1, 'ENGINE_E_AWAY'],
    ['on a call that is being answered', 500, true, 1, null],
    ['without a call', 500, false, 0, null],
  ])('%s', async (_, away, answers, pending, code) => {
    const found = await assertModelWasThere(model(away, answers), 500, async () => pending).then(
      () => null,
      (error: { code: string }) => error.code,
    );
    expect(found).toBe(code);
  });
});
