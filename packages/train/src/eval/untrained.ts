import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { embeddedConfig, learnerEntry, RemoteLearner } from '@treeward/learner';
import { BpeTokenizer } from '@treeward/policy';
import { Service } from '../processes/service.js';

/**
 * A checkpoint of the embedded policy's architecture with initial weights: what every other policy is compared with. Made once per
 * folder, the same for the same seed.
 * @param tokenizer tokenizer.json of the policies it stands beside
 */
export async function untrainedCheckpoint(folder: string, tokenizer: string, seed: number): Promise<string> {
  if (existsSync(join(folder, 'tokenizer.json'))) return folder;
  mkdirSync(folder, { recursive: true });
  const socketPath = join(folder, 'l.sock');
  const { vocabSize } = BpeTokenizer.load(tokenizer);
  const service = new Service({
    name: 'learner',
    entry: learnerEntry,
    socketPath,
    config: () => ({ init: { config: embeddedConfig(vocabSize), seed }, threads: 1 }),
    logFile: join(folder, 'learner.log'),
    runDirectory: folder,
    maxRestarts: 0,
  });
  try {
    await service.start();
    await new RemoteLearner(socketPath, { scratch: join(folder, 'scratch') }).save(join(folder, 'saved'));
  } finally {
    await service.stop();
  }
  for (const file of ['model.safetensors', 'config.json'])
    cpSync(join(folder, 'saved', file), join(folder, file));
  // Last: with it the folder counts as made.
  cpSync(tokenizer, join(folder, 'tokenizer.json'));
  return folder;
}
