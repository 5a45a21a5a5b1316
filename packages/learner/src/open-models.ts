import { TreewardError } from '@treeward/base';
import { readWeights, type Weights } from './checkpoint/weights.js';
import { resolveModel } from './hub/resolve-model.js';
import { initLora } from './model/lora.js';
import { EMBED, HEAD, initParams, VALUE_BIAS, VALUE_WEIGHT, type ParamArrays } from './model/params.js';
import type { ModelConfig } from './model/config.js';
import type { TfjsLearnerOptions } from './tfjs-learner.js';

/** The arrays a learner starts with. */
interface OpenedModels {
  policy: Weights;
  critic: Weights | null;
  reference: ParamArrays | null;
  /** Where the policy came from; null: random. */
  source: string | null;
}

/** @throws TreewardError LEARNER_E_OPTIONS, LEARNER_E_CONFIG, LEARNER_E_WEIGHTS, LEARNER_E_HUB */
export async function openModels(options: TfjsLearnerOptions): Promise<OpenedModels> {
  const { checkpoint, init, lora, critic } = options;
  if ((checkpoint === undefined) === (init === undefined)) {
    throw new TreewardError('LEARNER_E_OPTIONS', 'give either `checkpoint` or `init`, not both and not none');
  }
  const source = checkpoint === undefined ? null : await resolveModel(checkpoint);
  let policy: Weights = source
    ? readWeights(source)
    : { config: init!.config, params: initParams(init!.config, init!.seed) };
  const base = policy;
  if (critic?.kind === 'head') policy = withValueHead(policy, 'tokens+value');
  if (lora) {
    if (critic?.kind === 'head') {
      throw new TreewardError(
        'LEARNER_E_OPTIONS',
        '`lora` trains adapters only: a value head on the same trunk stays 0',
        {
          hints: ["use `critic: { kind: 'model' }` with `lora`"],
        },
      );
    }
    const adapters = initLora(policy.config, lora, init?.seed ?? 0);
    policy = { ...policy, params: new Map([...policy.params, ...adapters]) };
  }
  return {
    policy,
    critic:
      critic?.kind === 'model'
        ? withValueHead(
            critic.checkpoint ? readWeights(await resolveModel(critic.checkpoint)) : base,
            'value',
          )
        : null,
    reference: options.reference ? readReference(await resolveModel(options.reference), policy.config) : null,
    source,
  };
}

function readReference(directory: string, config: ModelConfig): ParamArrays {
  const { config: found, params } = readWeights(directory);
  const shape = (c: ModelConfig): string => JSON.stringify({ ...c, tie: null, output: null });
  if (shape(found) !== shape(config) || found.tie !== config.tie) {
    throw new TreewardError('LEARNER_E_OPTIONS', `the reference ${directory} is a model of another shape`);
  }
  return params;
}

/** The same trunk, read as a value (as well): a head that starts at 0 where there is none yet. */
function withValueHead({ config, params }: Weights, output: 'value' | 'tokens+value'): Weights {
  const out: ParamArrays = new Map(params);
  if (!out.has(VALUE_WEIGHT)) {
    out.set(VALUE_WEIGHT, { shape: [1, config.hiddenSize], data: new Float32Array(config.hiddenSize) });
    out.set(VALUE_BIAS, { shape: [1], data: new Float32Array(1) });
  }
  if (output === 'tokens+value') return { config: { ...config, output }, params: out };
  const head = out.get(HEAD);
  out.delete(HEAD);
  const scale = config.tie === 'untied' ? 1 : config.tie;
  const embed =
    config.tie === 'untied' || !head
      ? out.get(EMBED)!
      : { shape: head.shape, data: (head.data as Float32Array).map((x) => x * scale) };
  out.delete(EMBED);
  return { config: { ...config, output, tie: 'untied' }, params: new Map([[EMBED, embed], ...out]) };
}
