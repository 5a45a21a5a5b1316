import { describe, expect, it } from 'vitest';
import { rewardPayload } from './payload.js';
import type { Task } from './types.js';

const task: Task = {
  id: 't',
  directory: '/',
  query: 'do it',
  sessions: [{ prompt: 'do it', newSession: false }],
  inputFiles: null,
  rewardDirectory: '/',
  metadata: { a: 1 },
  mcp: null,
};

describe('rewardPayload', () => {
  it('has all five fields, the transcript in event form without system messages', () => {
    const payload = rewardPayload(task, {
      tools: [],
      messages: [
        { role: 'system', text: 'hidden' },
        { role: 'user', text: 'do it' },
        {
          role: 'assistant',
          parts: [{ type: 'tool_call', id: 'x', name: 'read', arguments: { path: 'a' } }],
        },
        { role: 'tool', callId: 'x', text: 'content' },
        { role: 'assistant', parts: [{ type: 'text', text: 'Done.' }] },
      ],
    });
    expect(payload).toEqual({
      task_id: 't',
      user_query: 'do it',
      metadata: { a: 1 },
      final_message: 'Done.',
      transcript: [
        { type: 'message', message: { role: 'user', content: [{ type: 'text', text: 'do it' }] } },
        {
          type: 'message',
          message: {
            role: 'assistant',
            content: [{ type: 'toolCall', name: 'read', arguments: { path: 'a' } }],
          },
        },
        { type: 'message', message: { role: 'toolResult', content: [{ type: 'text', text: 'content' }] } },
        { type: 'message', message: { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] } },
      ],
    });
  });

  it('is whole when nothing was sampled', () => {
    expect(rewardPayload(task, null)).toMatchObject({ final_message: '', transcript: [] });
  });
});
