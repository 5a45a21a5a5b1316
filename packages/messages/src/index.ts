export type {
  CallForm,
  CanonicalRequest,
  Dialect,
  DialectName,
  Message,
  Reply,
  ReplyForm,
  ReplyMeta,
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
export { openaiResponses } from './openai-responses.js';
export {
  countingDialectForPath,
  dialectForPath,
  dialectOfClient,
  dialects,
  MODELS_PATH,
} from './dialects.js';
export { encodeServerEvent, textPieces } from './sse.js';
export { nestedTooDeep } from './lenient.js';
