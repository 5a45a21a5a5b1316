import type { Identity } from '@treeward/telemetry';
import { jsonObject, stringOf } from '../transcripts/lines.js';
import type { IdentifiableRequest } from '../types.js';

const CLASSES: Readonly<Record<string, Identity['requestClass']>> = {
  compact: 'compaction',
  compaction: 'compaction',
  review: 'side',
  memory_consolidation: 'side',
};

/** Session, thread, and a JSON header with facts of the turn. The main agent's thread is the session itself. */
export function identifyCodex({ headers }: IdentifiableRequest): Identity {
  const turn = jsonObject(Buffer.from(headers['x-codex-turn-metadata'] ?? ''));
  const session = headers['session-id'] ?? stringOf(turn['session_id']) ?? undefined;
  const thread = headers['thread-id'] ?? stringOf(turn['thread_id']) ?? undefined;
  const parent = headers['x-codex-parent-thread-id'] ?? stringOf(turn['parent_thread_id']) ?? undefined;
  const child = thread !== undefined && session !== undefined && thread !== session;
  const kind = CLASSES[headers['x-openai-subagent'] ?? ''] ?? CLASSES[stringOf(turn['request_kind']) ?? ''];
  return {
    ...(session !== undefined && { session }),
    ...(child && { agent: thread }),
    ...(child && parent !== undefined && parent !== session && { parentAgent: parent }),
    requestClass: kind ?? (child ? 'subagent' : 'main'),
    ...(!child && { depth: 0 }),
  };
}
