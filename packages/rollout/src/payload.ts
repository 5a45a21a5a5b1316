import type { Message } from '@treeward/messages';
import type { Conversation } from './conversation.js';
import type { Task } from './types.js';

type Content =
  { type: 'text'; text: string } | { type: 'toolCall'; name: string; arguments: Record<string, unknown> };

export interface TranscriptEvent {
  type: 'message';
  message: { role: 'user' | 'assistant' | 'toolResult'; content: Content[] };
}

const ROLE = { user: 'user', assistant: 'assistant', tool: 'toolResult' } as const;

function transcriptEvent(message: Exclude<Message, { role: 'system' }>): TranscriptEvent {
  const content: Content[] =
    message.role === 'assistant'
      ? message.parts.map((part) =>
          part.type === 'text' ? part : { type: 'toolCall', name: part.name, arguments: part.arguments },
        )
      : [{ type: 'text', text: message.text }];
  return { type: 'message', message: { role: ROLE[message.role], content } };
}

/**
 * What a checker may read besides the workspace: the file named by OPENCLAW_REWARD_PAYLOAD, all five documented fields. The
 * transcript comes from our own record, in the same event format for every harness.
 */
export function rewardPayload(task: Task, conversation: Conversation | null): Record<string, unknown> {
  const messages = (conversation?.messages ?? []).filter((message) => message.role !== 'system');
  const last = messages.at(-1);
  const texts =
    last?.role === 'assistant' ? last.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [];
  return {
    task_id: task.id,
    user_query: task.query,
    metadata: task.metadata,
    final_message: texts.join('\n'),
    transcript: messages.map(transcriptEvent),
  };
}
