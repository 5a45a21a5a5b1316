import { randomStream, TreewardError } from '@treeward/base';
import { Draw } from './draw.js';
import { FAMILIES } from './families/index.js';
import { drawSeed, seedOf } from './splits.js';
import type { GeneratedTask } from './types.js';

export const FAMILY_NAMES: readonly string[] = FAMILIES.map(({ name }) => name);

/** The same task for the same family and seed, on every machine. @throws TreewardError DATASET_E_FAMILY */
export function makeTask(family: string, seed: number): GeneratedTask {
  const found = FAMILIES.find(({ name }) => name === family);
  if (!found) {
    throw new TreewardError('DATASET_E_FAMILY', `no task family ${JSON.stringify(family)}`, {
      hints: [`families: ${FAMILY_NAMES.join(', ')}`],
    });
  }
  const draw = new Draw(randomStream(seed, 'task', family));
  const draft = found.make(draw);
  return { id: `${family}-${seed}`, family, domain: found.domain, seed, ...draft, slots: draw.slots };
}

/** The task a generated id stands for. @throws TreewardError DATASET_E_ID, DATASET_E_FAMILY */
export function taskById(id: string): GeneratedTask {
  const match = /^([a-z]+)-(\d{1,15})$/.exec(id);
  if (!match) throw new TreewardError('DATASET_E_ID', `${JSON.stringify(id)} is not <family>-<seed>`);
  return makeTask(match[1]!, Number(match[2]));
}

const familyAt = (index: number): string => FAMILY_NAMES[index % FAMILY_NAMES.length]!;

/**
 * The task of group `index` at a training step. Twelve groups per step see every family once; with fewer, the families
 * move on from step to step.
 */
export function trainTask(step: number, index: number, seed: number | string): GeneratedTask {
  const drawn = randomStream(seed, 'train-task', step, index);
  return makeTask(familyAt(step + index), drawSeed('train', drawn));
}

/** The `index`-th task to demonstrate in the cold start made with `seed`. */
export function demonstrationTask(index: number, seed: number | string): GeneratedTask {
  const drawn = randomStream(seed, 'demonstration-task', index);
  return makeTask(familyAt(index), drawSeed('demonstrate', drawn));
}

/** The first `n` held-out tasks, the families in turn: always the same ones, whatever the run's seed. */
export function heldOut(n: number): GeneratedTask[] {
  return Array.from({ length: n }, (_, i) => makeTask(familyAt(i), seedOf('held-out', i)));
}

/** Like `heldOut`, from a range of its own: for choosing a checkpoint, which must not look at the held-out tasks. */
export function validation(n: number): GeneratedTask[] {
  return Array.from({ length: n }, (_, i) => makeTask(familyAt(i), seedOf('validate', i)));
}
