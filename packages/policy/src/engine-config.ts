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

/** Path of the process entry, for `fork(engineMain, [socketPath, JSON.stringify(config)])`. Needs a build. */
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
