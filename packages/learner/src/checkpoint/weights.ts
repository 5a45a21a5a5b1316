import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, TreewardError, writeJsonAtomic, writeTensors, type NamedTensor } from '@treeward/base';
import type { ModelConfig } from '../model/config.js';
import { readModelConfig, toHfConfig } from '../model/hf-config.js';
import { detectTie, fromCheckpoint, toCheckpoint, type ParamArrays } from '../model/params.js';
import { readWeightsFile } from './read-weights-file.js';

export interface Weights {
  config: ModelConfig;
  params: ParamArrays;
}

const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';

/**
 * The files that hold a checkpoint's arrays: one, or the shards that its index names.
 *
 * @throws TreewardError LEARNER_E_WEIGHTS when the folder has neither
 */
export function weightFiles(directory: string): string[] {
  if (existsSync(join(directory, SINGLE))) return [SINGLE];
  if (!existsSync(join(directory, INDEX))) {
    throw new TreewardError('LEARNER_E_WEIGHTS', `${directory} has neither ${SINGLE} nor ${INDEX}`, {
      data: { file: directory },
    });
  }
  const index = readJson<{ weight_map?: Record<string, string> }>(join(directory, INDEX));
  const files = [...new Set(Object.values(index.weight_map ?? {}))];
  if (files.length === 0) {
    throw new TreewardError('LEARNER_E_WEIGHTS', `${join(directory, INDEX)} names no file`, {
      data: { file: join(directory, INDEX) },
    });
  }
  return files;
}

/**
 * A checkpoint as transformers writes it: `config.json` and safetensors in one file or in shards; float16, bfloat16 and
 * float64 are read as float32.
 *
 * @throws TreewardError LEARNER_E_CONFIG, LEARNER_E_WEIGHTS
 */
export function readWeights(directory: string): Weights {
  const config = readModelConfig(join(directory, 'config.json'));
  const tensors = new Map<string, NamedTensor>();
  for (const file of weightFiles(directory)) {
    for (const [name, tensor] of readWeightsFile(join(directory, file))) tensors.set(name, tensor);
  }
  const said = readJson<{ treeward?: unknown }>(join(directory, 'config.json')).treeward;
  const resolved = said || config.tie !== 'untied' ? config : { ...config, tie: detectTie(config, tensors) };
  return { config: resolved, params: fromCheckpoint(resolved, tensors, directory) };
}

export function writeWeights(directory: string, { config, params }: Weights): void {
  writeTensors(join(directory, SINGLE), toCheckpoint(config, params), { format: 'pt' });
  writeJsonAtomic(join(directory, 'config.json'), toHfConfig(config));
}
