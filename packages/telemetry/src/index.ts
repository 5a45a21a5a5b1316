export { RECORD_MINOR, RECORD_VERSION } from './types.js';
export type {
  CallEnd,
  CallPrompt,
  CallSampled,
  CallStart,
  EngineEvent,
  Identity,
  Json,
  MessagesDelta,
  ProcessExit,
  RecordEvent,
  Rewrite,
  RolloutEnd,
  RolloutStart,
  Span,
  ToolExec,
  TranscriptAgent,
  TranscriptEntry,
  TranscriptEvent,
  VerifierResult,
  WorkspaceChange,
  WorkspaceEvent,
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
