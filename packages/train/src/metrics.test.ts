import { appendFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JsonlSink, readMetrics, spread } from './metrics.js';

const path = (): string => join(mkdtempSync(join(tmpdir(), 'metrics-')), 'metrics.jsonl');

describe('JsonlSink', () => {
  it('drops values that are not finite and says how many', () => {
    const file = path();
    new JsonlSink(file).log({ 'progress/step': 1, a: Number.NaN, b: Infinity, c: 2 });
    expect(readMetrics(file)).toEqual([{ 'progress/step': 1, c: 2, 'progress/dropped_values': 2 }]);
  });

  it('rewinds to a step and forgets a torn tail', () => {
    const file = path();
    const sink = new JsonlSink(file);
    for (const step of [1, 2, 3]) sink.log({ 'progress/step': step });
    appendFileSync(file, '{"progress/step": 4, "rew');
    sink.rewind(2);
    expect(readMetrics(file).map((line) => line['progress/step'])).toEqual([1, 2]);
  });
});

describe('spread', () => {
  it('says nothing about nothing', () => expect(spread('x', [])).toEqual({}));
  it('gives mean, ends and deciles', () => {
    expect(spread('x', [4, 1, 3, 2])).toEqual({
      'x/mean': 2.5,
      'x/min': 1,
      'x/max': 4,
      'x/p10': 1,
      'x/p90': 4,
    });
  });
});
