import type { Identity } from '@treeward/telemetry';
import type { RecordedCall } from '../collect-calls.js';
import type { Evidence } from '../evidence.js';
import type { CallRole, EdgeType } from '../types.js';
import { wordsOf, type ToolUse } from './texts.js';

/** How a call attaches to what was there before it. Numbers are positions in causal order. */
export type Attachment =
  /** History and reply of `of`, then something new. */
  | { kind: 'extends'; of: number; evidence: Evidence[] }
  /** The same turn as `of`, sampled again. */
  | { kind: 'repeats'; of: number; evidence: Evidence[] }
  | { kind: 'compacted'; of: number; evidence: Evidence[] }
  /** A summary of the history that `of` ended is asked for in a request of its own. */
  | { kind: 'summarises'; of: number; evidence: Evidence[] }
  | { kind: 'rewritten'; of: number; evidence: Evidence[] }
  | { kind: 'spawned'; of: number; use: number; evidence: Evidence[] }
  | { kind: 'side' }
  /** A conversation of its own for which no cause is known. */
  | { kind: 'root' };

/** One call with all that the linking passes know of it. Positions (`at`) count calls in causal order. */
export interface LinkCall {
  readonly at: number;
  readonly entry: RecordedCall;
  readonly start: number;
  readonly finish: number;
  /** Equal numbers: the same prompt tokens; -1 unknown. */
  readonly promptNode: number;
  /** The call whose prompt and reply this prompt repeats token by token. */
  readonly byTokens: number | null;
  /** End of its messages in the message tree; -1 unknown. */
  readonly node: number;
  /** Where its new messages begin, and where its turn begins: behind the last reply of its history. */
  readonly attach: number;
  turn: number;
  readonly fragment: boolean;
  readonly systemText: string;
  readonly identity: Identity;
  readonly tools: string | null;
  /** Null: not known. */
  readonly toolless: boolean | null;
  readonly sampled: boolean;
  /** It answered, and the record lost what. */
  readonly replyLost: boolean;
  readonly replyText: string;
  readonly uses: readonly ToolUse[];
  readonly delivered: boolean;
  readonly malformed: boolean;
  attachment: Attachment;
  role: CallRole;
  /** The thread of one agent; numbered in the order of first calls. -1 for side calls. */
  thread: number;
}

export interface LinkEdge {
  from: number;
  to: number;
  type: EdgeType;
  evidence: Evidence[];
}

const words = new WeakMap<LinkCall, string>();

/** The words of its reply with single blanks between them. */
export function replyWords(call: LinkCall): string {
  let known = words.get(call);
  if (known === undefined) words.set(call, (known = wordsOf(call.replyText).join(' ')));
  return known;
}

/** Overlap of the half-open intervals in which two calls ran. */
export function overlap(a: LinkCall, b: LinkCall): boolean {
  return a.start < b.finish && b.start < a.finish;
}

/** Do two calls speak with the same tools, as far as is known? A title request is no retry of the turn whose words it repeats. */
export function sameSpeaker(a: LinkCall, b: LinkCall): boolean {
  if (a.toolless !== null && b.toolless !== null && a.toolless !== b.toolless) return false;
  // Two agents may be given the same words.
  const agents = [a.identity.agent, b.identity.agent];
  return agents[0] === agents[1] || agents.includes(undefined) || a.tools === null || b.tools === null;
}
