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
