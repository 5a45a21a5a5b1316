export type {
  ChatReply,
  ChatRequest,
  ChatTemplate,
  EffectiveSampling,
  Engine,
  EngineFacts,
  ParsedReply,
  Policy,
  Sampled,
  SampleRequest,
  Tokenizer,
  WeightsRef,
} from './types.js';
export { CompactTemplate } from './templates/compact.js';
export { HuggingFaceTemplate, type HuggingFaceTemplateOptions } from './templates/huggingface.js';
export { createTemplate, type TemplateSpec } from './templates/template-spec.js';
export { BpeTokenizer, type TokenizerJson } from './tokenizer/bpe-tokenizer.js';
export { trainTokenizer } from './tokenizer/train-tokenizer.js';
export { SPECIALS, type Special } from './tokenizer/vocabulary.js';
export { ScriptedEngine, type Choice, type Script, type ScriptedEngineOptions } from './engines/scripted.js';
export { LlamaEngine, type LlamaEngineOptions } from './engines/llama.js';
export { serveEngine, remoteEngine } from './engine-server.js';
export { createEngine, engineEnvironment, engineMain, type EngineConfig } from './engine-config.js';
export { llamaVersion } from './engines/llama-version.js';
export { probeEngine, type ProbeOptions } from './probe/probe-engine.js';
export { assertTrainable } from './probe/assert-trainable.js';
