export { RECORD_VERSION } from './types.js';
export type {
  CallEnd,
  CallPrompt,
  CallSampled,
  CallStart,
  Json,
  ProcessExit,
  RecordEvent,
  RolloutEnd,
  RolloutStart,
  Span,
  VerifierResult,
} from './types.js';
export { RecordWriter, type RecordWriterOptions } from './writer.js';
export {
  EMPTY_TOKEN_HASH,
  extendTokenHash,
  finishTokenHash,
  hashTokens,
  stepLane0,
  stepLane1,
  type TokenHashState,
} from './token-hash.js';
export { eventSchema, eventSchemas } from './schema.js';
export { readRecord, type LaidAside, type RecordIssue, type RolloutRecord } from './read-record.js';
