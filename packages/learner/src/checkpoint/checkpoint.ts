import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, readTensors, TreewardError, writeJsonAtomic, writeTensors } from '@treeward/base';
import type { ParamArrays } from '../model/params.js';
import type { ResolvedOptimizer } from '../optim/options.js';
import { readWeights, writeWeights, type Weights } from './weights.js';

/** `state.json`: what a resumed learner has to know beside arrays. */
export interface LearnerState {
  schema: 1;
  version: number;
  optimizerSteps: number;
  optimizer: ResolvedOptimizer;
  /** Steps of a value model of its own, which lies in `critic/`. */
  criticSteps?: number;
}

/** A model and the moments of its optimizer. */
export interface SavedModel {
  weights: Weights;
  moments: ParamArrays;
}

const CRITIC = 'critic';
const MOMENTS = 'optimizer.safetensors';

/** `state.json` is written last: a folder that has it is whole. */
export function writeCheckpoint(
  directory: string,
  policy: SavedModel,
  critic: SavedModel | null,
  state: LearnerState,
): void {
  writeModel(directory, policy);
  if (critic) {
    mkdirSync(join(directory, CRITIC), { recursive: true });
    writeModel(join(directory, CRITIC), critic);
  }
  writeJsonAtomic(join(directory, 'state.json'), state);
}

function writeModel(directory: string, { weights, moments }: SavedModel): void {
  writeWeights(directory, weights);
  writeTensors(join(directory, MOMENTS), moments);
}

const readModel = (directory: string): SavedModel => ({
  weights: readWeights(directory),
  moments: readTensors(join(directory, MOMENTS)).tensors as ParamArrays,
});

/** @throws TreewardError LEARNER_E_CHECKPOINT when the folder was not written to its end */
export function readCheckpoint(directory: string): {
  policy: SavedModel;
  critic: SavedModel | null;
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
  const state = readJson<LearnerState>(stateFile);
  return {
    policy: readModel(directory),
    critic: state.criticSteps === undefined ? null : readModel(join(directory, CRITIC)),
    state,
  };
}
