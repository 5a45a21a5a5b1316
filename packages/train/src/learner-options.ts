import type { TfjsLearnerOptions } from '@treeward/learner';
import type { TrainConfig } from './config.js';

/** What a run's config says of its learner beside weights and optimizer. */
export function learnerOptions(
  { learner, algo }: Pick<TrainConfig, 'learner' | 'algo'>,
  checkpoint: string,
): Omit<TfjsLearnerOptions, 'checkpoint' | 'init' | 'optimizer'> {
  return {
    microBatchTokens: learner.micro_batch_tokens,
    checkpointAbove: learner.checkpoint_above,
    publishType: learner.publish_type,
    threads: learner.threads,
    ...(learner.lora && { lora: learner.lora }),
    ...(algo.type === 'ppo' && { critic: { kind: algo.value } }),
    // The KL of the grpo family is to the weights the run started from.
    ...('kl_coef' in algo && algo.kl_coef > 0 && { reference: checkpoint }),
  };
}
