import type { ReplyPart } from '@treeward/messages';
import type { ChatTemplate, Sampled } from '@treeward/policy';
import { textIds } from './fake-engine.js';
import { template as compact } from './harness.js';

/** The compact template has one part per turn. This one says any turn, as JSON, in the same ids. */
export const speakingTemplate: ChatTemplate = {
  id: 'speaking',
  vocabSize: compact.vocabSize,
  stopIds: compact.stopIds,
  bannedIds: compact.bannedIds,
  generation: compact.generation,
  head: (tools) => compact.head(tools),
  message: (message) => compact.message(message),
  reply: (parts) => textIds(compact, JSON.stringify(parts)),
  decode: (ids) => compact.decode(ids),
  parse: (sampled) => ({ parts: JSON.parse(compact.decode(sampled.slice(0, -1))) as ReplyPart[] }),
};

/** What an engine gives whose policy says these parts. */
export function saying(parts: readonly ReplyPart[], finish: Sampled['finish'] = 'stop'): Partial<Sampled> {
  const tokens = speakingTemplate.reply(parts);
  return { tokens, logprobs: new Float32Array(tokens.length), finish };
}

export const text = (value: string): ReplyPart => ({ type: 'text', text: value });
export const call = (name: string, args: Record<string, unknown>): ReplyPart => ({
  type: 'tool_call',
  id: '',
  name,
  arguments: args,
});
