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
