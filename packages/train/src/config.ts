import { readFileSync } from 'node:fs';
import { parse as parseToml } from 'smol-toml';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import { ALL_LINEARS, resolveAlgorithm } from '@treeward/learner';
import { algoSchema, methodOf } from './algo-config.js';

/** Every key has a tested default; an unknown key anywhere is an error. Defaults < files, left to right < command line. */
const run = z.strictObject({
  name: z.string().default('mixed'),
  /** Where runs lie; `runs/<name>` unless `--run-dir` says otherwise. */
  dir: z.string().nullable().default(null),
  seed: z.number().int().default(0),
  steps: z.number().int().min(0).default(13),
});

const policy = z.strictObject({
  /** Folder with config.json, tokenizer.json and safetensors (one file or shards), or a model of the hub: `hf:org/name`. */
  checkpoint: z.string().default('datasets/cold-start'),
  /** `compact`: the project's own; `huggingface`: from the checkpoint's tokenizer.json and tokenizer_config.json. */
  template: z.enum(['compact', 'huggingface']).default('compact'),
});

const engine = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('llama'),
    context_length: z.number().int().min(64).default(768),
    sequences: z.number().int().min(1).default(8),
    threads: z.number().int().min(1).default(1),
  }),
  /** A demonstrator plays prepared replies (tests, demonstrations): no weights are sampled from. */
  z.strictObject({ kind: z.literal('scripted') }),
  /** Ids in, ids and log-probabilities out (vLLM); the server must offer each version's weights as `{version}` in `model`. */
  z.strictObject({
    kind: z.literal('openai-compatible'),
    mode: z.enum(['completions', 'chat']).default('completions'),
    base_url: z.string().min(1),
    model: z.string().min(1),
    /** Name of the variable that holds the key. */
    api_key_env: z.string().min(1).optional(),
    context_length: z.number().int().min(64).default(768),
    vocab_size: z.number().int().min(1).default(768),
  }),
  /** Text only: accepted for evaluation, refused for training by the start-up probe. */
  z.strictObject({
    kind: z.literal('anthropic'),
    model: z.string().min(1),
    api_key_env: z.string().min(1).default('ANTHROPIC_API_KEY'),
  }),
]);

const gateway = z.strictObject({
  /** Threads that encode large texts, beside the event loop. */
  encode_threads: z.number().int().min(1).default(1),
  /** Loopback port on which the gateway serves Prometheus metrics at /metrics; null: none. */
  metrics_port: z.number().int().min(1).max(65535).nullable().default(null),
  /** Messages and replies in gateway.log. */
  log_prompts: z.boolean().default(false),
});

/** Where rollouts and their checkers run; checked by a trial at the start of the run. */
const sandbox = z.discriminatedUnion('provider', [
  z.strictObject({ provider: z.literal('bubblewrap') }),
  z.strictObject({
    provider: z.literal('docker'),
    /** The daemon's unix socket; null: $DOCKER_HOST, else /var/run/docker.sock. */
    socket: z.string().min(1).nullable().default(null),
    /** Name or id; null: the one that `nx run sandbox:build-image` makes. */
    image: z.string().min(1).nullable().default(null),
    /** A runtime that the daemon knows, such as `runsc`; null: its own. */
    runtime: z.string().min(1).nullable().default(null),
  }),
]);

const sampling = z.strictObject({
  /** `config`: these values; `request`: temperature, top-p and top-k that a harness asks for win. Both are recorded. */
  from: z.enum(['config', 'request']).default('config'),
  temperature: z.number().min(0).default(1),
  top_p: z.number().gt(0).max(1).default(1),
  top_k: z.number().int().min(0).default(0),
  max_tokens: z.number().int().min(1).default(90),
});

const rollouts = z.strictObject({
  /** Groups per step by harness: { "claude-code" = 9, openclaw = 1 }. */
  groups: z.record(z.string(), z.number().int().min(0)).default({ 'claude-code': 9, openclaw: 1 }),
  group_size: z.number().int().min(1).default(4),
  concurrency: z.number().int().min(1).default(6),
  /** In flight at once, for harnesses that weigh more than others. */
  per_harness: z.record(z.string(), z.number().int().min(1)).default({ openclaw: 2 }),
  max_turns: z.number().int().min(1).default(6),
  max_tokens: z.number().int().min(1).default(1200),
  wall_seconds: z.number().gt(0).default(60),
  /** Record every command that runs inside a sandbox (strace; about 2 ms per command). */
  trace: z.boolean().default(false),
});

const optimizer = z.strictObject({
  lr: z.number().gt(0).default(1e-4),
  warmup_steps: z.number().int().min(0).default(3),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.99),
  epsilon: z.number().gt(0).default(1e-8),
  weight_decay: z.number().min(0).default(0),
  max_grad_norm: z.number().gt(0).default(1),
  /** After the warm-up. */
  schedule: z.enum(['constant', 'linear', 'cosine']).default('constant'),
  /** Share of the rate that is left at the last step. */
  floor: z.number().min(0).max(1).default(0),
});

const evaluation = z.strictObject({
  /** Held-out tasks, run before the first and after the last step. 0 = none. */
  tasks: z.number().int().min(0).default(72),
  /** Share of held-out tasks by harness (the same tasks before and after). */
  harnesses: z.record(z.string(), z.number().min(0)).default({ 'claude-code': 11, openclaw: 1 }),
});

const checkpoint = z.strictObject({
  /** Latest checkpoints kept; every `keep_every`-th stays for good. */
  keep: z.number().int().min(1).default(2),
  keep_every: z.number().int().min(0).default(10),
  /** Rollout folders of steps older than this are removed. 0 = keep all. */
  keep_rollouts_of_steps: z.number().int().min(0).default(0),
});

const learner = z.strictObject({
  threads: z.number().int().min(1).default(2),
  /** Distinct tokens in one forward and backward; a longer path stands alone. */
  micro_batch_tokens: z.number().int().min(1).default(2048),
  /** Passes of more tokens keep only each layer's input and compute the rest again. */
  checkpoint_above: z.number().int().min(1).default(8192),
  /** Type of the matrices that the sampler gets. */
  publish_type: z.enum(['f32', 'f16']).default('f32'),
  /** Low-rank adapters instead of all weights. */
  lora: z
    .strictObject({
      rank: z.number().int().min(1).default(8),
      alpha: z.number().gt(0).default(16),
      targets: z
        .array(z.enum(ALL_LINEARS))
        .min(1)
        .default([...ALL_LINEARS]),
    })
    .nullable()
    .default(null),
});

const schema = z.strictObject({
  run: run.prefault({}),
  policy: policy.prefault({}),
  engine: engine.prefault({ kind: 'llama' }),
  gateway: gateway.prefault({}),
  sandbox: sandbox.prefault({ provider: 'bubblewrap' }),
  sampling: sampling.prefault({}),
  rollouts: rollouts.prefault({}),
  algo: algoSchema.prefault({ type: 'rloo' }),
  optimizer: optimizer.prefault({}),
  learner: learner.prefault({}),
  eval: evaluation.prefault({}),
  checkpoint: checkpoint.prefault({}),
});

export type TrainConfig = z.infer<typeof schema>;

type Tree = { [key: string]: unknown };

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Maps are replaced whole (`groups`), sections merged key by key. */
const MAPS = new Set(['groups', 'per_harness', 'harnesses']);

function merge(below: Tree, above: Tree): Tree {
  const out: Tree = { ...below };
  for (const [key, value] of Object.entries(above)) {
    out[key] = isTree(value) && isTree(out[key]) && !MAPS.has(key) ? merge(out[key], value) : value;
  }
  return out;
}

/** `rollouts.group-size=8` → {rollouts: {group_size: 8}}; values are read as TOML, else as a bare string. */
function override(text: string): Tree {
  const at = text.indexOf('=');
  if (at < 1) {
    throw new TreewardError('CONFIG_E_OVERRIDE', `--set ${text}: expected section.key=value`, {
      hints: ['for example --set rollouts.group-size=8'],
    });
  }
  const path = text.slice(0, at).replaceAll('-', '_').split('.');
  const raw = text.slice(at + 1);
  let value: unknown;
  try {
    value = (parseToml(`v = ${raw}`) as Tree)['v'];
  } catch {
    value = raw;
  }
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree;
}

/**
 * Reads `@ a.toml @ b.toml` and `--set` overrides into one resolved config.
 * @throws TreewardError CONFIG_E_FILE, CONFIG_E_TOML, CONFIG_E_KEY (unknown key, named), CONFIG_E_VALUE, CONFIG_E_OVERRIDE
 */
export function loadConfig(files: readonly string[], overrides: readonly string[] = []): TrainConfig {
  let tree: Tree = {};
  for (const file of files) {
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (cause) {
      throw new TreewardError('CONFIG_E_FILE', `cannot read config file ${file}`, { cause, data: { file } });
    }
    try {
      tree = merge(tree, parseToml(text) as Tree);
    } catch (cause) {
      throw new TreewardError('CONFIG_E_TOML', `${file}: ${(cause as Error).message}`, {
        cause,
        data: { file },
      });
    }
  }
  for (const text of overrides) tree = merge(tree, override(text));
  return parseConfig(tree, files.at(-1) ?? '(command line)');
}

export function parseConfig(tree: unknown, file: string): TrainConfig {
  const parsed = schema.safeParse(tree);
  if (parsed.success) {
    const { algorithm } = methodOf(parsed.data.algo);
    resolveAlgorithm(algorithm, 1); // settings that contradict each other are found before anything starts
    if (parsed.data.rollouts.trace && parsed.data.sandbox.provider === 'docker') {
      throw new TreewardError(
        'CONFIG_E_VALUE',
        `${file}: rollouts.trace: commands in containers cannot be watched`,
        {
          data: { file, field: 'rollouts.trace' },
          hints: ['sandbox.provider = "bubblewrap"', 'rollouts.trace = false'],
        },
      );
    }
    return parsed.data;
  }
  const issue = parsed.error.issues[0]!;
  if (issue.code === 'unrecognized_keys') {
    const field = [...issue.path, issue.keys[0]].join('.');
    throw new TreewardError('CONFIG_E_KEY', `${file}: unknown key ${field}`, {
      data: { file, field },
      hints: [
        '`treeward train --dry-run` prints every key with its value',
        'keys are snake_case; there are no aliases',
      ],
    });
  }
  const field = issue.path.join('.');
  throw new TreewardError('CONFIG_E_VALUE', `${file}: ${field || '(top level)'}: ${issue.message}`, {
    data: { file, field },
  });
}
