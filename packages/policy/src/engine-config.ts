import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readJson, TreewardError, writeJsonAtomic } from '@treeward/base';
import { LlamaEngine, type LlamaEngineOptions } from './engines/llama.js';
import { ScriptedEngine } from './engines/scripted.js';
import { CompactTemplate } from './templates/compact.js';
import { BpeTokenizer } from './tokenizer/bpe-tokenizer.js';
import type { Engine, Policy, WeightsRef } from './types.js';

/** What an engine process is started with. JSON on its command line. */
export type EngineConfig = (
  | ({ kind: 'llama' } & LlamaEngineOptions)
  | {
      kind: 'scripted';
      /** Directory of `<tag>.json` scripts. */
      scripts: string;
      /** Path of tokenizer.json. */
      tokenizer: string;
      contextLength?: number;
    }
) & {
  /**
   * File in which the process notes what was loaded last, and from which it loads when it starts: a restarted engine
   * answers with the last published weights by itself. Unset: it starts without a policy.
   */
  state?: string;
};

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

/** @throws TreewardError ENGINE_E_CONFIG, TOKENIZER_E_FILE */
export async function createEngine(config: EngineConfig): Promise<Engine> {
  const { state, ...rest } = config;
  const engine = build(rest);
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

function build(config: EngineConfig): Engine {
  switch (config.kind) {
    case 'llama': {
      const { kind: _, ...options } = config;
      return new LlamaEngine(options);
    }
    case 'scripted': {
      const { scripts, tokenizer, contextLength } = config;
      return new ScriptedEngine({
        template: new CompactTemplate(BpeTokenizer.load(tokenizer)),
        scripts,
        ...(contextLength === undefined ? {} : { contextLength }),
      });
    }
    default:
      throw new TreewardError(
        'ENGINE_E_CONFIG',
        `engine.kind is ${JSON.stringify((config as { kind: unknown }).kind)}, expected "llama" or "scripted"`,
      );
  }
}
