export type {
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
export { BpeTokenizer, type TokenizerJson } from './tokenizer/bpe-tokenizer.js';
export { trainTokenizer } from './tokenizer/train-tokenizer.js';
export { SPECIALS, type Special } from './tokenizer/vocabulary.js';
