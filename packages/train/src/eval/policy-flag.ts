import { join } from 'node:path';
import { TreewardError, writeJsonAtomic, type RunFolder } from '@treeward/base';
import { referenceOf, type EvaluateOptions, type Solution } from '@treeward/eval';
import { adapterByName } from '@treeward/harness-adapters';
import type { ReplyPart } from '@treeward/messages';
import type { TemplateSpec } from '@treeward/policy';
import { engineFlag } from '../cli/rollout-command.js';
import { scriptFor, stepToReply } from '../demonstrator.js';
import type { EngineSpec } from '../processes/stack.js';

interface PolicyFlag {
  engine: EngineSpec;
  /** Prepares what a scripted policy says, before each rollout. */
  onPlanned?: NonNullable<EvaluateOptions['onPlanned']>;
}

/**
 * `--engine` of an evaluation: those of `rollout`, and two that need no model: `reference` plays each task's reference solution through
 * the harness, `noop` says "Done." at once.
 */
export function policyFlag(
  text: string,
  template: TemplateSpec,
  out: RunFolder,
  harness: string,
  contextLength: number,
): PolicyFlag {
  const scripts = join(out.root, 'scripts');
  if (text !== 'reference' && text !== 'noop') {
    const engine = engineFlag(text, template);
    return {
      engine: engine.kind === 'llama' || engine.kind === 'scripted' ? { ...engine, contextLength } : engine,
    };
  }
  const adapter = adapterByName(harness);
  return {
    engine: { kind: 'scripted', scripts, template, contextLength: 1_000_000 },
    onPlanned: (spec, task) => {
      if (text === 'noop') {
        const script = scriptFor(adapter, [[{ type: 'text', text: 'Done.' }]]);
        writeJsonAtomic(join(scripts, `${spec.rolloutId}.json`), script);
        return;
      }
      const solution: Solution | null = referenceOf(task);
      if (!solution) {
        throw new TreewardError('TASK_E_SOLUTION', `${task.id}: there is no reference solution to play`, {
          data: { task: task.id, file: task.source },
          hints: ['--engine reference needs solution/reference.json in every task'],
        });
      }
      const replies: ReplyPart[][] = [
        ...solution.steps.map((step) => stepToReply(step, adapter)),
        [{ type: 'text', text: solution.final_message ?? 'Done.' }],
      ];
      writeJsonAtomic(join(scripts, `${spec.rolloutId}.json`), scriptFor(adapter, replies));
    },
  };
}
