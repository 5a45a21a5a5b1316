import type { Tensor } from '../tf/load.js';
import type { Ops } from '../tf/ops.js';
import { randomStream, TreewardError } from '@treeward/base';
import type { ModelConfig } from './config.js';
import type { Params } from './fused.js';
import { isHidden, paramShapes, type ParamArrays } from './params.js';

/** Low-rank adapters: W is read as W + (alpha / rank)·B·A; only A and B train. */
export interface LoraOptions {
  rank: number;
  alpha: number;
  /** Linears by the last part of their name, as in PEFT's `target_modules`. @default all seven of a layer */
  targets: readonly string[];
}

export const ALL_LINEARS = [
  'q_proj',
  'k_proj',
  'v_proj',
  'o_proj',
  'gate_proj',
  'up_proj',
  'down_proj',
] as const;

const suffix = /\.weight$/;
/** [rank, in] */
export const loraA = (name: string): string => name.replace(suffix, '.lora_A.weight');
/** [out, rank] */
export const loraB = (name: string): string => name.replace(suffix, '.lora_B.weight');
export const isLora = (name: string): boolean => name.includes('.lora_A.') || name.includes('.lora_B.');

/** Names of the matrices that have an adapter. @throws TreewardError LEARNER_E_OPTIONS naming a target that is no linear */
export function loraTargets(config: ModelConfig, { targets, rank }: LoraOptions): string[] {
  const unknown = targets.find((target) => !(ALL_LINEARS as readonly string[]).includes(target));
  if (unknown !== undefined || targets.length === 0 || !Number.isInteger(rank) || rank < 1) {
    throw new TreewardError(
      'LEARNER_E_OPTIONS',
      unknown === undefined
        ? `lora: rank ${rank} on ${targets.length} targets`
        : `lora: ${unknown} is no linear of the model`,
      { hints: [`linears: ${ALL_LINEARS.join(', ')}`] },
    );
  }
  return [...paramShapes(config).keys()].filter(
    (name) => isHidden(name) && targets.some((target) => name.includes(`.${target}.`)),
  );
}

/** Fresh adapters, as PEFT makes them: A uniform in ±1/√in, B zero, so that they change nothing yet. */
export function initLora(config: ModelConfig, options: LoraOptions, seed: string | number): ParamArrays {
  const shapes = paramShapes(config);
  const out: ParamArrays = new Map();
  for (const name of loraTargets(config, options)) {
    const [rows, columns] = shapes.get(name) as [number, number];
    const random = randomStream(seed, 'lora', name);
    const bound = 1 / Math.sqrt(columns);
    const a = Float32Array.from({ length: options.rank * columns }, () => (2 * random.next() - 1) * bound);
    out.set(loraA(name), { shape: [options.rank, columns], data: a });
    out.set(loraB(name), { shape: [rows, options.rank], data: new Float32Array(rows * options.rank) });
  }
  return out;
}

/** The weights that the passes see. Arrays without an adapter are the same tensors. */
export function mergeLora(ops: Ops, params: Params, { rank, alpha }: LoraOptions): Params {
  const merged: Params = new Map();
  for (const [name, tensor] of params) {
    if (isLora(name)) continue;
    const b = params.get(loraB(name));
    const delta = b && ops.mul(ops.matMul(b, params.get(loraA(name))!), ops.constant(alpha / rank));
    merged.set(name, delta ? ops.add(tensor, delta) : tensor);
  }
  return merged;
}

/** Gradients of the adapters from those of the merged weights: ∂B = s·∂W·Aᵀ, ∂A = s·Bᵀ·∂W. The base gets none. */
export function loraGrads(ops: Ops, params: Params, grads: Params, { rank, alpha }: LoraOptions): Params {
  const scale = ops.constant(alpha / rank);
  const out: Params = new Map();
  for (const [name, grad] of grads) {
    const a = params.get(loraA(name));
    if (!a) continue;
    const scaled: Tensor = ops.mul(grad, scale);
    out.set(loraA(name), ops.matMul(params.get(loraB(name))!, scaled, true));
    out.set(loraB(name), ops.matMul(scaled, a, false, true));
  }
  return out;
}
