import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, readTensors, TreewardError, writeJsonAtomic, writeTensors } from '@treeward/base';
import { readModelConfig, toHfConfig, type ModelConfig } from './model/config.js';
import { detectTie, fromCheckpoint, toCheckpoint, type ParamArrays } from './model/params.js';
import type { ResolvedOptimizer } from './optim/options.js';

/** `state.json`: what a resumed learner has to know beside arrays. */
export interface LearnerState {
  schema: 1;
  version: number;
  optimizerSteps: number;
  optimizer: ResolvedOptimizer;
}

export interface Weights {
  config: ModelConfig;
  params: ParamArrays;
}

/** `config.json` + `model.safetensors` as transformers writes them (float32, one file). */
export function readWeights(directory: string): Weights {
  const file = join(directory, 'model.safetensors');
  const config = readModelConfig(join(directory, 'config.json'));
  const { tensors } = readTensors(file);
  const said = readJson<{ treeward?: unknown }>(join(directory, 'config.json')).treeward;
  const resolved = said || config.tie !== 'untied' ? config : { ...config, tie: detectTie(config, tensors) };
  return { config: resolved, params: fromCheckpoint(resolved, tensors, file) };
}

export function writeWeights(directory: string, { config, params }: Weights): void {
  writeTensors(join(directory, 'model.safetensors'), toCheckpoint(config, params), { format: 'pt' });
  writeJsonAtomic(join(directory, 'config.json'), toHfConfig(config));
}

/** `state.json` is written last: a folder that has it is whole. */
export function writeCheckpoint(
  directory: string,
  weights: Weights,
  moments: ParamArrays,
  state: LearnerState,
): void {
  writeWeights(directory, weights);
  writeTensors(join(directory, 'optimizer.safetensors'), moments);
  writeJsonAtomic(join(directory, 'state.json'), state);
}

/** @throws TreewardError LEARNER_E_CHECKPOINT when the folder was not written to its end */
export function readCheckpoint(directory: string): {
  weights: Weights;
  moments: ParamArrays;
  state: LearnerState;
} {
  const stateFile = join(directory, 'state.json');
  if (!existsSync(stateFile)) {
    throw new TreewardError(
      'LEARNER_E_CHECKPOINT',
      `${directory} has no state.json: not a whole checkpoint`,
      {
        data: { file: stateFile },
        hints: ['resume from an earlier checkpoint of the run'],
      },
    );
  }
  return {
    weights: readWeights(directory),
    moments: readTensors(join(directory, 'optimizer.safetensors')).tensors as ParamArrays,
    state: readJson<LearnerState>(stateFile),
  };
}
