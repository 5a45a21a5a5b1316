import { join } from 'node:path';
import { estimateMemory, readModelConfig, type MemoryEstimate } from '@treeward/learner';
import { checkpointFolder } from './checkpoint-folder.js';
import type { TrainConfig } from './config.js';
import { learnerOptions } from './learner-options.js';

/**
 * What the learner of a run will need beside its process, from the shape of the checkpoint alone.
 *
 * @throws TreewardError CHECKPOINT_E_MISSING, LEARNER_E_HUB, LEARNER_E_CONFIG
 */
export async function learnerMemory(config: TrainConfig): Promise<MemoryEstimate> {
  const checkpoint = await checkpointFolder(config.policy.checkpoint, 'policy.checkpoint');
  const { lora, critic, reference } = learnerOptions(config, checkpoint);
  const longest = 'context_length' in config.engine ? config.engine.context_length : 0;
  return estimateMemory({
    config: readModelConfig(join(checkpoint, 'config.json')),
    ...(lora && { lora }),
    critic: critic?.kind === 'model',
    reference: reference !== undefined,
    passTokens: Math.max(config.learner.micro_batch_tokens, longest),
    checkpointAbove: config.learner.checkpoint_above,
  });
}

/** One line for people. */
export function describeMemory({
  total,
  weights,
  optimizer,
  step,
  activations,
  logits,
}: MemoryEstimate): string {
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  return (
    `memory of the learner: about ${mib(total)} beside its process ` +
    `(weights ${mib(weights)}, optimizer ${mib(optimizer)}, one step ${mib(step)}, ` +
    `activations ${mib(activations)}, logits ${mib(logits)})`
  );
}
