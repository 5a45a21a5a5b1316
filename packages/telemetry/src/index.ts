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
