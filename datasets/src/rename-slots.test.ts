import { randomStream } from '@treeward/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FAMILY_NAMES, makeTask } from './make-task.js';
import { POOLS, RESERVED_WORDS, SYLLABLE_SHARE } from './pools.js';
import { renameSlots, renameTask } from './rename-slots.js';
import { seedOf } from './splits.js';
import type { GeneratedTask } from './types.js';

const values = Object.values(POOLS).flat();
const anyTask = fc
  .record({ family: fc.constantFrom(...FAMILY_NAMES), n: fc.integer({ min: 0, max: 1e6 }) })
  .map(({ family, n }) => makeTask(family, seedOf('train', n)));

const everyText = (task: GeneratedTask): string =>
  // Without the escaped newlines, whose `n` would stick to the next word.
  JSON.stringify([task.query, task.files, task.oracle, task.flaws, task.rules]).replaceAll('\\n', ' ');
const wordsOf = (text: string): string[] => text.match(/[A-Za-z_]+|\d+/g) ?? [];

test('no word is in two pools or reserved', () => {
  expect(new Set(values).size).toBe(values.length);
  expect(values.filter((value) => RESERVED_WORDS.has(value))).toEqual([]);
});

test('no value occurs as a fixed word of an instruction, a file or a step, in any case', () => {
  const fixed = new Set<string>();
  for (const family of FAMILY_NAMES) {
    for (let n = 0; n < 100; n++) {
      const task = makeTask(family, seedOf('train', n));
      const slots = new Set(task.slots.map(({ value }) => value));
      for (const text of [
        task.query,
        ...Object.entries(task.files).flat(),
        JSON.stringify([task.oracle, task.flaws]),
      ]) {
        for (const word of wordsOf(text.replaceAll('\\n', '\n')))
          if (!slots.has(word)) fixed.add(word.toLowerCase());
      }
    }
  }
  expect(fixed).toContain('echo');
  expect(fixed).toContain('unknown');
  expect(values.filter((value) => fixed.has(value))).toEqual([]);
  // Random syllables avoid reserved words only: so every fixed word that looks like syllables has to be reserved.
  const syllabic = [...fixed].filter((word) => /^([bdfgklmnprstvz][aeiou]){2,3}$/.test(word));
  expect(syllabic.filter((word) => !RESERVED_WORDS.has(word))).toEqual([]);
});

test('each value is recorded with its pool, and 15 % of open ones are random syllables', () => {
  let [open, random] = [0, 0];
  const foreign: string[] = [];
  for (const family of FAMILY_NAMES) {
    for (let n = 0; n < 200; n++) {
      for (const { value, pool } of makeTask(family, seedOf('train', n)).slots) {
        const fixed = pool !== 'number' && POOLS[pool].includes(value);
        if (pool === 'name' || pool === 'item' || pool === 'city') {
          open++;
          if (!fixed) random++;
        } else if (!(pool === 'number' ? /^[1-9]\d\d$/.test(value) : fixed)) foreign.push(`${pool} ${value}`);
      }
    }
  }
  expect(foreign).toEqual([]);
  expect(Math.abs(random / open - SYLLABLE_SHARE)).toBeLessThan(0.02);
});

test('renaming is a bijection: it can be undone, and touches nothing but slots', () => {
  fc.assert(
    fc.property(anyTask, fc.integer(), (task, seed) => {
      const rename = renameSlots(task, randomStream(seed, 'rename'));
      const image = task.slots.map(({ value }) => rename(value));
      expect(new Set(image).size).toBe(image.length);
      const renamed = renameTask(task, rename);
      const back = new Map(image.map((value, i) => [value, task.slots[i]!.value]));
      const undone = everyText(renamed).replace(/[A-Za-z_]+|\d+/g, (word) => back.get(word) ?? word);
      expect(undone).toBe(everyText(task));
      expect(renamed.slots.map(({ pool }) => pool)).toEqual(task.slots.map(({ pool }) => pool));
    }),
    { numRuns: 200 },
  );
});

test('what harnesses say around a value survives', () => {
  const task = makeTask('config', seedOf('train', 5));
  const rename = renameSlots(task, randomStream(1, 'rename'));
  const path = Object.keys(task.files)[0]!;
  for (const said of [
    'File created successfully at: ',
    'The file has been updated. 1\t',
    'Error: no such file or directory ',
    'Successfully wrote 87 bytes to ',
    'Command exited with code 1 ',
    'Successfully replaced text in ',
    '(no output) ',
  ]) {
    expect(rename(`${said}/workspace/${path}`)).toBe(`${said}/workspace/${rename(path)}`);
  }
  expect(rename(path)).not.toBe(path);
});

test('numbers with an order stay: scores, positions, hours, versions, file digits', () => {
  for (const family of ['max', 'order', 'reply', 'bump']) {
    const task = makeTask(family, seedOf('train', 3));
    const renamed = renameTask(task, renameSlots(task, randomStream(2, 'rename')));
    const numbers = (text: string): string[] => text.match(/\d+/g) ?? [];
    expect(numbers(everyText(renamed))).toEqual(numbers(everyText(task)));
  }
});
