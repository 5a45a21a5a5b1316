import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { readJson, TreewardError, writeJsonAtomic } from '@treeward/base';
import { LlamaEngine } from './engines/llama.js';
import { ScriptedEngine } from './engines/scripted.js';
import { createTemplate, templateSpec } from './templates/template-spec.js';
import type { Engine, Policy, WeightsRef } from './types.js';

const count = z.int().positive();
const text = z.string().min(1);
const common = {
  /**
   * File in which the process notes what was loaded last, and from which it loads when it starts: a restarted engine
   * answers with the last published weights by itself. Unset: it starts without a policy.
   */
  state: text.exactOptional(),
};
const upstream = {
  ...common,
  model: text,
  apiKeyEnv: text.exactOptional(),
  timeout: count.exactOptional(),
  retries: z.int().nonnegative().exactOptional(),
};

const schema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('llama'),
    ...common,
    contextLength: count.exactOptional(),
    sequences: count.exactOptional(),
    threads: count.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('scripted'),
    ...common,
    /** Directory of `<tag>.json` scripts. */
    scripts: text,
    /** Path of the compact template's `tokenizer.json`; `template` names any other. */
    tokenizer: text.exactOptional(),
    template: templateSpec.exactOptional(),
    contextLength: count.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('openai-compatible'),
    ...upstream,
    baseUrl: text,
    /** `completions`: ids in, ids and log-probabilities out. `chat`: messages only. */
    mode: z.enum(['completions', 'chat']),
    /** Needed in completions mode. */
    vocabSize: count.exactOptional(),
    /** Needed in completions mode. */
    contextLength: count.exactOptional(),
    logprobs: z.enum(['processed', 'raw']).exactOptional(),
    /** In chat mode, whether the server takes `top_k` (vLLM, SGLang, llama.cpp); completions mode always sends it. */
    topK: z.boolean().exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('anthropic'),
    ...upstream,
    baseUrl: text.exactOptional(),
    contextLength: count.exactOptional(),
  }),
]);

/** What an engine process is started with. JSON on its command line; field by field the options of the engine's class. */
export type EngineConfig = z.infer<typeof schema>;

/**
 * What the engine's process needs in its environment. llama.cpp puts a batch's outputs in order lazily, at the first look at
 * them, and node-llama-cpp looks from several pool threads at once, one per sequence: about once in a thousand tokens on a busy
 * machine a sequence then samples from another one's distribution. With a single pool thread they take turns.
 */
export const engineEnvironment: Readonly<Record<string, string>> = { UV_THREADPOOL_SIZE: '1' };

/** @throws TreewardError ENGINE_E_CONFIG when a llama engine's process was started without `engineEnvironment` */
export function checkEngineEnvironment(config: EngineConfig): void {
  const [name, value] = Object.entries(engineEnvironment)[0]!;
  if (config.kind !== 'llama' || process.env[name] === value) return;
  throw new TreewardError(
    'ENGINE_E_CONFIG',
    `the process of a llama engine needs ${name}=${value} in its environment`,
    {
      hints: ['start it with `engineEnvironment`: sequences would sample from each other’s distributions'],
    },
  );
}

/** Path of the process entry, for `fork(engineMain, [socketPath, JSON.stringify(config)], { env: { ...process.env, ...engineEnvironment } })`. Needs a build. */
export const engineMain: string = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../dist/engine-main.js' : './engine-main.js', import.meta.url),
);

/** @throws TreewardError ENGINE_E_CONFIG naming the field (unknown ones too), TOKENIZER_E_FILE, TEMPLATE_E_* */
export async function createEngine(config: EngineConfig): Promise<Engine> {
  const { state, ...rest } = checked(config);
  const engine = await build(rest);
  if (state === undefined) return engine;
  if (existsSync(state)) {
    const { policy, weights } = readJson<{ policy: Policy; weights: WeightsRef }>(state);
    await engine.load(policy, weights).catch((error: unknown) => {
      // A note of an earlier run, whose weights were cleaned away, must not keep a new run's engine from starting.
      process.stderr.write(`engine: starts without a policy: ${(error as Error).message}\n`);
    });
  }
  const load = engine.load.bind(engine);
  engine.load = async (policy, weights) => {
    await load(policy, weights);
    writeJsonAtomic(state, { policy, weights });
  };
  return engine;
}

function checked(config: EngineConfig): EngineConfig {
  const result = schema.safeParse(config);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = issue?.path ?? [];
  const field = ['engine', ...path].join('.');
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], config);
  const kinds = schema.options.map((option) => option.shape.kind.value);
  const why = path[0] === 'kind' ? `expected one of ${kinds.join(', ')}` : issue?.message;
  throw new TreewardError('ENGINE_E_CONFIG', `${field} is ${JSON.stringify(value)}: ${why}`, {
    data: { field },
  });
}

/** The clients of hosted models are loaded only when one is asked for. */
async function build(config: EngineConfig): Promise<Engine> {
  switch (config.kind) {
    case 'llama': {
      const { kind: _, ...options } = config;
      return new LlamaEngine(options);
    }
    case 'scripted': {
      const { scripts, tokenizer, template, contextLength } = config;
      if ((tokenizer === undefined) === (template === undefined)) {
        throw missing('engine.tokenizer', 'a scripted engine needs either `tokenizer` or `template`');
      }
      return new ScriptedEngine({
        template: createTemplate(template ?? { kind: 'compact', tokenizer: tokenizer! }),
        scripts,
        ...(contextLength === undefined ? {} : { contextLength }),
      });
    }
    case 'openai-compatible': {
      const { kind: _, mode, ...options } = config;
      const { vocabSize, contextLength } = options;
      if (mode === 'chat') {
        const { OpenAiChatEngine } = await import('./engines/openai-chat.js');
        return new OpenAiChatEngine(options);
      }
      if (vocabSize === undefined || contextLength === undefined) {
        throw missing('engine.vocabSize', 'completions mode needs `vocabSize` and `contextLength`');
      }
      const { topK: _always, ...rest } = options;
      const { CompletionsEngine } = await import('./engines/completions.js');
      return new CompletionsEngine({ ...rest, vocabSize, contextLength });
    }
    case 'anthropic': {
      const { kind: _, ...options } = config;
      const { AnthropicEngine } = await import('./engines/anthropic.js');
      return new AnthropicEngine(options);
    }
  }
}

function missing(field: string, why: string): TreewardError {
  return new TreewardError('ENGINE_E_CONFIG', `${field}: ${why}`, { data: { field } });
}
