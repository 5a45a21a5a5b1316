export type {
  CanonicalRequest,
  Dialect,
  DialectName,
  Message,
  Reply,
  ReplyPart,
  RequestedSampling,
  ServerEvent,
  TextPart,
  ToolCallPart,
  ToolSpec,
  Usage,
} from './types.js';
export { canonicaliseArguments, canonicalJson, canonicalKey, toolManifestHash } from './canonical.js';
export { PrefixIndex, type PrefixMatch } from './prefix-index.js';
export { anthropicMessages } from './anthropic-messages.js';
export { openaiChat } from './openai-chat.js';
export {
  COUNT_TOKENS_PATH,
  countTokensBody,
  dialectForPath,
  dialects,
  MODELS_PATH,
  modelsBody,
} from './dialects.js';
export { encodeServerEvent, textPieces } from './sse.js';
