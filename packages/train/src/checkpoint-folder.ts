import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TreewardError } from '@treeward/base';
import { readModelConfig, resolveModel, weightFiles } from '@treeward/learner';

/**
 * A policy's folder: as named from here, else from Treeward's own root (so that the shipped `datasets/cold-start` is found from
 * anywhere); or `hf:org/name[@revision]`, from the hub's cache or downloaded into it. Weights may be in shards.
 *
 * @throws TreewardError CHECKPOINT_E_MISSING naming the file that is not there, LEARNER_E_HUB
 */
export async function checkpointFolder(name: string, field: string): Promise<string> {
  const folder = name.startsWith('hf:') ? await resolveModel(name) : ownFolder(name);
  const missing = missingFile(folder);
  if (missing === null) return folder;
  throw new TreewardError('CHECKPOINT_E_MISSING', `${field} ${folder} has no ${missing}`, {
    data: { file: join(folder, missing), field },
    hints: [
      '`treeward cold-start --help` shows how the embedded default is made',
      'or name a folder with config.json, tokenizer.json and safetensors, or a model of the hub: hf:org/name',
    ],
  });
}

function ownFolder(path: string): string {
  const home = fileURLToPath(new URL('../../../', import.meta.url));
  return [resolve(path), join(home, path)].find((candidate) => existsSync(candidate)) ?? resolve(path);
}

function missingFile(folder: string): string | null {
  const lacks = (file: string): boolean => !existsSync(join(folder, file));
  const first = ['config.json', 'tokenizer.json'].find(lacks);
  if (first !== undefined) return first;
  if (lacks('model.safetensors') && lacks('model.safetensors.index.json')) return 'model.safetensors';
  return weightFiles(folder).find(lacks) ?? null;
}

/**
 * A template whose ids the model does not have would be found out in the middle of a rollout.
 *
 * @throws TreewardError CONFIG_E_VOCABULARY
 */
export function assertVocabulary(checkpoint: string, vocabSize: number): void {
  const model = readModelConfig(join(checkpoint, 'config.json')).vocabSize;
  if (vocabSize <= model) return;
  throw new TreewardError(
    'CONFIG_E_VOCABULARY',
    `policy.checkpoint ${checkpoint}: its tokenizer has ${vocabSize} ids, its model ${model}`,
    {
      data: { field: 'policy.checkpoint', tokenizer: vocabSize, model },
      hints: ['tokenizer.json and config.json must be of one model'],
    },
  );
}
