import { expect, test } from 'vitest';
import {
  demonstrationTask,
  FAMILY_NAMES,
  heldOut,
  makeTask,
  taskById,
  trainTask,
  validation,
} from './make-task.js';
import { seedOf, SPLIT_SIZE, splitOf, SPLITS } from './splits.js';

test('splits own disjoint ranges that cover every seed they give out', () => {
  for (const split of SPLITS) {
    expect(splitOf(seedOf(split, 0))).toBe(split);
    expect(splitOf(seedOf(split, SPLIT_SIZE - 1))).toBe(split);
  }
  expect(() => seedOf('train', SPLIT_SIZE)).toThrow(expect.objectContaining({ code: 'DATASET_E_SEED' }));
  expect(() => splitOf(4 * SPLIT_SIZE)).toThrow(expect.objectContaining({ code: 'DATASET_E_SEED' }));
});

test('every source of tasks stays in its split, whatever the run seed', () => {
  const seeds = [0, 1, 'mixed', -5, 2 ** 40];
  for (const seed of seeds) {
    for (let step = 0; step < 20; step++) {
      for (let index = 0; index < 12; index++) {
        expect(splitOf(trainTask(step, index, seed).seed)).toBe('train');
        expect(splitOf(demonstrationTask(step * 12 + index, seed).seed)).toBe('demonstrate');
      }
    }
  }
  expect(new Set(heldOut(50).map((task) => splitOf(task.seed)))).toEqual(new Set(['held-out']));
  expect(new Set(validation(50).map((task) => splitOf(task.seed)))).toEqual(new Set(['validate']));
});

test('held-out tasks do not turn up in training by chance either', () => {
  const content = ({ query, files }: { query: string; files: object }): string =>
    JSON.stringify([query, files]);
  const kept = new Set(heldOut(192).map(content));
  expect(kept.size).toBe(192);
  let [seen, drawn] = [0, 0];
  for (let step = 0; step < 200; step++) {
    for (let index = 0; index < 12; index++, drawn++)
      if (kept.has(content(trainTask(step, index, 0)))) seen++;
  }
  expect(drawn).toBe(2400);
  expect(seen).toBe(0);
});

test('twelve groups see every family once; fewer groups see them all in time', () => {
  const families = (steps: number, groups: number): Set<string> => {
    const all = new Set<string>();
    for (let s = 0; s < steps; s++) for (let g = 0; g < groups; g++) all.add(trainTask(s, g, 1).family);
    return all;
  };
  expect(families(1, 12).size).toBe(12);
  expect(families(11, 2).size).toBe(12);
  expect(new Set(heldOut(12).map(({ family }) => family)).size).toBe(12);
});

test('a run seed decides the tasks; an id gives its task back', () => {
  expect(trainTask(3, 2, 7)).toEqual(trainTask(3, 2, 7));
  expect(trainTask(3, 2, 7).id).not.toBe(trainTask(3, 2, 8).id);
  const task = trainTask(4, 5, 6);
  expect(taskById(task.id)).toEqual(task);
});

test('unknown families and ids are named', () => {
  expect(() => makeTask('nope', 1)).toThrow(
    expect.objectContaining({ code: 'DATASET_E_FAMILY', hints: [`families: ${FAMILY_NAMES.join(', ')}`] }),
  );
  expect(() => taskById('bug')).toThrow(expect.objectContaining({ code: 'DATASET_E_ID' }));
  expect(() => taskById('nope-3')).toThrow(expect.objectContaining({ code: 'DATASET_E_FAMILY' }));
});
