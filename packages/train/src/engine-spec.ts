import { join } from 'node:path';
import type { TemplateSpec } from '@treeward/policy';
import type { TrainConfig } from './config.js';
import type { EngineSpec } from './processes/stack.js';

/** The template of a checkpoint's folder. */
export function templateOf(kind: TrainConfig['policy']['template'], checkpoint: string): TemplateSpec {
  return kind === 'compact'
    ? { kind, tokenizer: join(checkpoint, 'tokenizer.json') }
    : { kind, directory: checkpoint };
}

/** Config keys to the engine's own options. `scripts`: where a demonstrator's replies lie. */
export function engineSpec(
  engine: TrainConfig['engine'],
  template: TemplateSpec,
  scripts: string,
): EngineSpec {
  switch (engine.kind) {
    case 'llama':
      return {
        kind: 'llama',
        contextLength: engine.context_length,
        sequences: engine.sequences,
        threads: engine.threads,
      };
    case 'scripted':
      return { kind: 'scripted', scripts, template };
    case 'openai-compatible':
      return {
        kind: 'openai-compatible',
        mode: engine.mode,
        baseUrl: engine.base_url,
        model: engine.model,
        contextLength: engine.context_length,
        vocabSize: engine.vocab_size,
        ...(engine.api_key_env !== undefined && { apiKeyEnv: engine.api_key_env }),
      };
    case 'anthropic':
      return { kind: 'anthropic', model: engine.model, apiKeyEnv: engine.api_key_env };
  }
}
