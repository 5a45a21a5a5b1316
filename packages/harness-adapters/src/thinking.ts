import type { HarnessTask } from './types.js';

/** How much a harness asks its model to think. */
export const THINKING_LEVELS = ['off', 'minimal', 'low', 'medium', 'high'] as const;
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

/** The level that the task asks for; null for none, and for off. */
export const thinkingOf = (task: HarnessTask | undefined): Exclude<ThinkingLevel, 'off'> | null =>
  task?.thinking === undefined || task.thinking === 'off' ? null : task.thinking;
