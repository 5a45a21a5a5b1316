import { endWithParent, serveRpc, toPlainError } from '@treeward/base';
import { readBatch, writeScores } from './batch-file.js';
import type { LearnerProcessConfig } from './spawn-learner.js';
import { TfjsLearner } from './tfjs-learner.js';
import type { Loss, OptimizerStep } from './types.js';

// The learner's process: `node learner-main.js <socketPath> <configJson>`, config = LearnerProcessConfig. It serves until
// `close` is called or the parent that forked it is gone.

const [socketPath, configJson] = process.argv.slice(2);
if (!socketPath || !configJson) {
  process.stderr.write('usage: node learner-main.js <socketPath> <configJson>\n');
  process.exit(2);
}
endWithParent(() => process.exit(0));

try {
  const { resume, ...options } = JSON.parse(configJson) as LearnerProcessConfig;
  const learner = await TfjsLearner.open(options);
  if (resume !== undefined) await learner.load(resume);
  const server = await serveRpc(socketPath, {
    capabilities: () => learner.capabilities(),
    score: async ({ batch, output }: { batch: string; output: string }) => {
      writeScores(output, await learner.score(readBatch(batch)));
    },
    update: (input: { batch: string; loss: Loss; step: OptimizerStep }) =>
      learner.update(readBatch(input.batch), input.loss, input.step),
    publish: ({ directory }: { directory: string }) => learner.publish(directory),
    save: ({ directory }: { directory: string }) => learner.save(directory),
    load: ({ directory }: { directory: string }) => learner.load(directory),
    close: async () => {
      await learner.close();
      // After this answer has left.
      setTimeout(() => {
        void server.close().then(() => process.exit(0));
      }, 10);
    },
  });
  process.send?.({ type: 'ready' });
} catch (error) {
  const plain = toPlainError(error);
  const report = (): never => process.exit(1);
  process.stderr.write(`${plain.code}: ${plain.message}\n`);
  if (process.send) process.send({ type: 'failed', error: plain }, report);
  else report();
}
