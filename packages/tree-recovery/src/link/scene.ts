import type { MessageTree } from '../message-tree.js';
import type { Growth } from './growth.js';
import type { LinkCall } from './link-call.js';
import type { ReplyIndex } from './reply-index.js';
import type { Threads } from './threads.js';
import type { Witnesses } from './witnesses.js';

/** How agents are started in this rollout, as those show whose task stands in their first message. */
export interface Spawning {
  /** Names of the tools that start them, and hashes of the manifests they work with. */
  readonly tools: Set<string>;
  readonly childTools: Set<string>;
  /** Something was judged before this was known. */
  missed: boolean;
}

/** What stands beside the calls: other witnesses, and what an earlier pass has found out. */
export interface Known {
  /** Calls that are known to have written a summary. */
  summaries: ReadonlySet<number>;
  /** Null in the first pass. */
  spawning: Spawning | null;
  witnesses: Witnesses;
}

/** All that is known of the calls before the one that is judged. */
export interface Scene {
  readonly calls: readonly LinkCall[];
  readonly tree: MessageTree;
  readonly replies: ReplyIndex;
  readonly threads: Threads;
  readonly growth: Growth;
  /** Does any call of the rollout offer tools? */
  readonly anyTools: boolean;
  readonly known: Known;
}

/** Agents, the latest, of which one may have lost its last reply. */
export const RECENT_THREADS = 16;
/** Calls of one agent, the latest, that are looked at: branches run side by side. */
export const RECENT_CALLS = 8;
