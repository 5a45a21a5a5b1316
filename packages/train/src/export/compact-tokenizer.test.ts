import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { readJson } from '@treeward/base';
import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import { BpeTokenizer, CompactTemplate } from '@treeward/policy';
import { describe, expect, it } from 'vitest';
import { compactTokenizerFiles } from './compact-tokenizer.js';

interface HfMessage {
  role: Message['role'];
  content: string | { text: string }[];
  tool_calls?: { function: { name: string; arguments: Record<string, unknown> } }[];
}
interface Fixture {
  sha256: Record<string, string>;
  cases: { tools: { function: ToolSpec }[]; messages: HfMessage[]; generation: boolean; ids: number[] }[];
}
/** Made by transformers from the exported cold start (`make_conversations.py`). */
const fixture = readJson<Fixture>(join(import.meta.dirname, '__fixtures__', 'conversations.json'));
const coldStart = fileURLToPath(new URL('../../../../datasets/cold-start/', import.meta.url));
const tokenizer = BpeTokenizer.load(join(coldStart, 'tokenizer.json'));

const textOf = ({ content }: HfMessage): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text).join('');

function ours(message: HfMessage): Message {
  const text = textOf(message);
  if (message.role === 'tool') return { role: 'tool', callId: '', text };
  if (message.role !== 'assistant') return { role: message.role, text };
  const parts: ReplyPart[] = text ? [{ type: 'text', text }] : [];
  for (const { function: call } of message.tool_calls ?? [])
    parts.push({ type: 'tool_call', id: '', ...call });
  return { role: 'assistant', parts };
}

describe('the cold start as transformers reads it', () => {
  it('is exported as the files that the fixture was made from', () => {
    const { max_position_embeddings: length } = readJson<{ max_position_embeddings: number }>(
      join(coldStart, 'config.json'),
    );
    const files = compactTokenizerFiles(tokenizer.toJson(), length);
    const hashes = Object.keys(fixture.sha256).map((name) => [
      name,
      createHash('sha256').update(files[name]!).digest('hex'),
    ]);
    expect(Object.fromEntries(hashes)).toEqual(fixture.sha256);
    expect(JSON.parse(files['generation_config.json']!)).toEqual({
      eos_token_id: [8, 9],
      pad_token_id: 0,
      suppress_tokens: [0, 1, 2, 3, 4],
    });
  });

  it.each(fixture.cases.map((example, i) => [i, example] as const))(
    'conversation %i has the ids that apply_chat_template gives',
    (_, { tools, messages, generation, ids }) => {
      const template = new CompactTemplate(tokenizer);
      const got = [
        ...template.head(tools.map((tool) => tool.function)),
        ...messages.flatMap((message) => [...template.message(ours(message))]),
        ...(generation ? template.generation : []),
      ];
      expect(got).toEqual(ids);
    },
  );

  it('refuses a tokenizer in which two ids spell the same', () => {
    const own = new BpeTokenizer([
      [107, 108],
      [108, 109],
      [266, 109],
      [107, 267],
    ]).toJson();
    expect(() => compactTokenizerFiles(own, 10)).toThrow(/ids 268 and 269 both spell "abc"/);
  });
});
