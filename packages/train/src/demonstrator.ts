import { randomStream, writeJsonAtomic } from '@treeward/base';
import {
  demonstrate,
  FINAL_TEXT,
  stepArguments,
  type GeneratedTask,
  type Mixture,
  type Step,
} from '@treeward/datasets';
import { adapterByName, toolCall, type HarnessAdapter } from '@treeward/harness-adapters';
import type { ReplyPart } from '@treeward/messages';
import type { Script } from '@treeward/policy';
import { join } from 'node:path';

/** An abstract step as the call this harness's policy would make: its own tool and argument names, verbatim. */
export function stepToReply(step: Step, adapter: HarnessAdapter): ReplyPart[] {
  return [{ type: 'tool_call', id: 'demo', ...toolCall(adapter.tools[step.verb], stepArguments(step)) }];
}

/** Prepares what a scripted policy will say in one rollout: `<scripts>/<rolloutId>.json`. */
export function writeScript(
  scripts: string,
  rolloutId: string,
  task: GeneratedTask,
  harness: string,
  options: { seed: string; mixture?: Mixture },
): { plan: string } {
  const adapter = adapterByName(harness);
  const { plan, steps } = demonstrate(task, randomStream(options.seed, 'demonstration'), options.mixture);
  const replies: ReplyPart[][] = [
    ...steps.map((step) => stepToReply(step, adapter)),
    [{ type: 'text', text: FINAL_TEXT }],
  ];
  writeJsonAtomic(join(scripts, `${rolloutId}.json`), scriptFor(adapter, replies));
  return { plan };
}

/** What a scripted policy says through `adapter`, its title too where the harness asks for one. */
export function scriptFor(adapter: HarnessAdapter, replies: ReplyPart[][]): Script {
  return { replies, ...(adapter.asksTitle && { side: [{ type: 'text', text: 'A task' }] }) };
}
