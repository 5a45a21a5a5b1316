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
export { appendEvents } from './append-events.js';
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
export { readRecord, type RolloutRecord } from './read-record.js';
export type { LaidAside, RecordIssue } from './parse-events.js';
export { EVENT_TYPES, type FlatRecord } from './flat-record.js';
export { flattenRecord } from './flatten-record.js';
export { eventOf, viewRecord } from './view-record.js';
export { parseRecords, type ParseRecordsOptions } from './parse-records.js';
export type { ParseOutcome } from './parse-worker.js';
