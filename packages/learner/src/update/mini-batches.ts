import { randomStream } from '@treeward/base';

/** Members of each mini-batch of each epoch, shuffled anew every epoch, deterministic by seed. */
export function* miniBatchPlan(
  members: readonly number[],
  { epochs, minibatches, seed }: { epochs: number; minibatches: number; seed: string },
): Generator<readonly number[]> {
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = randomStream(seed, 'minibatches', epoch).shuffle(members);
    const size = Math.max(1, Math.ceil(order.length / minibatches));
    for (let i = 0; i < order.length; i += size) yield order.slice(i, i + size);
  }
}
