import { existsSync } from 'node:fs';
import type { RunFolder } from '@treeward/base';
import { taskById, type GeneratedTask, type Plan } from '@treeward/datasets';
import { lastConversation, type Conversation } from '@treeward/rollout';
import { readIndex } from './record-demonstrations.js';

export interface Demonstration {
  harness: string;
  plan: Plan;
  conversation: Conversation;
  task: GeneratedTask;
}

/** Every demonstration whose rollout is finished; more may be there at the next call, while recording goes on. */
export function loadDemonstrations(run: RunFolder): Demonstration[] {
  return readIndex(run).flatMap(({ rolloutId, harness, plan, task }) => {
    const folder = run.rollout(rolloutId);
    if (!existsSync(folder.result) || !existsSync(folder.telemetry)) return [];
    const conversation = lastConversation(folder.root);
    return conversation ? [{ harness, plan, conversation, task: taskById(task) }] : [];
  });
}
