import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, TreewardError, writeJsonAtomic, writeTensors } from '@treeward/base';
import { isLora, type LoraOptions } from '../model/lora.js';
import type { ParamArrays } from '../model/params.js';
import { readWeightsFile } from './read-weights-file.js';

const PREFIX = 'base_model.model.';
const FILE = 'adapter_model.safetensors';

/** Adapters in PEFT's format: `adapter_config.json` and `adapter_model.safetensors`. */
export function writePeft(directory: string, params: ParamArrays, lora: LoraOptions, base: string): void {
  const adapters = [...params].filter(([name]) => isLora(name));
  writeTensors(join(directory, FILE), new Map(adapters.map(([name, array]) => [PREFIX + name, array])), {
    format: 'pt',
  });
  writeJsonAtomic(join(directory, 'adapter_config.json'), {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: base,
    r: lora.rank,
    lora_alpha: lora.alpha,
    target_modules: lora.targets,
    lora_dropout: 0,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
  });
}

/**
 * @throws TreewardError LEARNER_E_CHECKPOINT when there are none, or they are of other sizes than the learner's
 */
export function readPeft(directory: string, lora: LoraOptions): ParamArrays {
  const configFile = join(directory, 'adapter_config.json');
  const bad = (why: string): TreewardError =>
    new TreewardError('LEARNER_E_CHECKPOINT', `${directory}: ${why}`, { data: { file: configFile } });
  if (!existsSync(configFile)) throw bad('no adapter_config.json, but this learner trains adapters');
  const config = readJson<{ r?: number; lora_alpha?: number }>(configFile);
  if (config.r !== lora.rank || config.lora_alpha !== lora.alpha) {
    throw bad(
      `adapters of rank ${config.r}, alpha ${config.lora_alpha}; this learner has ${lora.rank}, ${lora.alpha}`,
    );
  }
  return new Map(
    [...readWeightsFile(join(directory, FILE))].map(([name, array]) => [name.slice(PREFIX.length), array]),
  );
}
