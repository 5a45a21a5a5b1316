import { randomStream } from '@treeward/base';
import { expect, test } from 'vitest';
import { demonstrate, type Plan } from './demonstrate.js';
import { demonstrationTask } from './make-task.js';
import { stepArguments } from './steps.js';

test('plans come in the shares of the mixture, with the steps they name', () => {
  const count: Record<Plan, number> = { clean: 0, dominant: 0, other: 0 };
  const N = 3000;
  for (let i = 0; i < N; i++) {
    const task = demonstrationTask(i, 0);
    const { plan, steps } = demonstrate(task, randomStream(0, 'demonstrate', i));
    count[plan]++;
    if (plan === 'clean') expect(steps).toBe(task.oracle);
    else if (plan === 'dominant') expect(steps).toBe(task.flaws[0]);
    else expect(task.flaws.slice(1)).toContain(steps);
  }
  // Three standard errors.
  expect(Math.abs(count.clean / N - 0.36)).toBeLessThan(0.027);
  expect(Math.abs(count.dominant / N - 0.52)).toBeLessThan(0.028);
  expect(Math.abs(count.other / N - 0.12)).toBeLessThan(0.018);
});

test('a mixture of one plan gives that plan; a wrong one is refused', () => {
  const task = demonstrationTask(0, 0);
  for (let i = 0; i < 50; i++) {
    const { plan } = demonstrate(task, randomStream(i), { clean: 1, dominant: 0, other: 0 });
    expect(plan).toBe('clean');
  }
  for (const bad of [
    { clean: 0.5, dominant: 0.6, other: 0.1 },
    { clean: -0.1, dominant: 1, other: 0.1 },
    { clean: NaN, dominant: 0.5, other: 0.5 },
  ]) {
    expect(() => demonstrate(task, randomStream(0), bad)).toThrow(
      expect.objectContaining({ code: 'DATASET_E_MIXTURE' }),
    );
  }
});

test('arguments stand in the order adapters name them', () => {
  expect(stepArguments({ verb: 'edit', path: 'p', old: 'o', new: 'n' })).toEqual(['p', 'o', 'n']);
  expect(stepArguments({ verb: 'write', path: 'p', content: 'c' })).toEqual(['p', 'c']);
  expect(stepArguments({ verb: 'read', path: 'p' })).toEqual(['p']);
  expect(stepArguments({ verb: 'exec', command: 'x' })).toEqual(['x']);
});
