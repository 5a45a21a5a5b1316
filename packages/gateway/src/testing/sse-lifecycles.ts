import type { DialectName } from '@treeward/messages';
import { readChat } from './sse-chat.js';
import { heardIn, type Told } from './sse-events.js';
import { readMessages } from './sse-messages.js';
import { readResponses } from './sse-responses.js';

/**
 * Reads a stream as strictly as its dialect allows and throws at the first event that is out of order, of another
 * reply, unknown, cut inside a character, or missing at the end.
 */
export function readLifecycle(dialect: DialectName, bytes: Uint8Array, options: { usage: boolean }): Told {
  const heard = heardIn(bytes);
  switch (dialect) {
    case 'anthropic-messages':
      return readMessages(heard);
    case 'openai-chat':
      return readChat(heard, options.usage);
    case 'openai-responses':
      return readResponses(heard);
  }
}
