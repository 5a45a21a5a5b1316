import type { Random } from '@treeward/base';
import { drawFrom } from './draw.js';
import type { GeneratedTask, Rule, Step } from './types.js';

/** A word or a whole number: what is renamed is never part of either. */
const TOKEN = /[A-Za-z_]+|\d+/g;

const strings = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, inner]) => [key, ...strings(inner)])
      : [];

/** Every text a task consists of, file names included. */
function texts(task: GeneratedTask): string[] {
  return strings([task.files, task.query, task.rules, task.oracle, task.flaws]);
}

/**
 * A function that renames the task's values in any text of it or about it (query, files, steps, tool results of a real
 * harness): each value by another of its pool, all at once, two values never to the same. Applied to everything that
 * belongs to a rollout it yields the rollout of another, equally valid task. Text that holds no value passes unchanged.
 *
 * Give it plain text, not JSON: in an escaped newline the `n` would count as part of the next word. Only whole words and
 * whole numbers are replaced. Single digits (scores, positions, versions, file-name digits) and hours
 * are no slots and stay.
 */
export function renameSlots(task: GeneratedTask, random: Random): (text: string) => string {
  const slots = new Set(task.slots.map(({ value }) => value));
  // A new value must not be a word that the task uses for something else.
  const taken = new Set(texts(task).flatMap((text) => text.match(TOKEN) ?? []));
  for (const value of slots) taken.delete(value);
  const renamed = new Map<string, string>();
  for (const { value, pool } of task.slots) {
    const next = drawFrom(pool, random, (candidate) => !taken.has(candidate));
    taken.add(next);
    renamed.set(value, next);
  }
  return (text) => text.replace(TOKEN, (token) => renamed.get(token) ?? token);
}

/** The task with its values renamed. Its id stays that of the original: it is not a task of the generator any more. */
export function renameTask(task: GeneratedTask, rename: (text: string) => string): GeneratedTask {
  const deep = <T>(value: T, keep: ReadonlySet<string>): T => {
    if (typeof value === 'string') return rename(value) as T;
    if (Array.isArray(value)) return value.map((inner: unknown) => deep(inner, keep)) as T;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [
        key,
        keep.has(key) ? (inner as unknown) : deep(inner, keep),
      ]),
    ) as T;
  };
  const rules = deep<readonly Rule[]>(task.rules, new Set(['name', 'kind']));
  const steps = (plan: readonly Step[]): readonly Step[] => deep(plan, new Set(['verb']));
  return {
    ...task,
    query: rename(task.query),
    files: Object.fromEntries(Object.entries(task.files).map(([path, text]) => [rename(path), rename(text)])),
    rules,
    oracle: steps(task.oracle),
    flaws: task.flaws.map(steps),
    slots: task.slots.map(({ value, pool }) => ({ value: rename(value), pool })),
  };
}
