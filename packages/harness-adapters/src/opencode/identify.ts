import type { Identity } from '@treeward/telemetry';
import type { IdentifiableRequest } from '../types.js';

/**
 * Every request names its session, and a sub-agent's its parent's. A request without tools is the title of the session
 * when only the prompt precedes it, a summary when a history does.
 */
export function identifyOpencode({ headers, messages, tools }: IdentifiableRequest): Identity {
  const session = headers['x-session-id'];
  const parent = headers['x-parent-session-id'];
  const history = messages.some((message) => message.role === 'assistant' || message.role === 'tool');
  const apart: Identity['requestClass'] = history ? 'compaction' : 'side';
  return {
    ...(session !== undefined && { session: parent ?? session }),
    ...(session !== undefined && parent !== undefined && { agent: session }),
    requestClass: tools.length === 0 ? apart : parent !== undefined ? 'subagent' : 'main',
    ...(parent === undefined && { depth: 0 }),
  };
}
