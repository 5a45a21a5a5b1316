import { describe, expect, it } from 'vitest';
import { dialects } from './dialects.js';

describe('how much to think', () => {
  const chat = { messages: [{ role: 'user', content: 'a' }] };
  it.each([
    ['anthropic-messages', { ...chat, output_config: { effort: 'high' } }],
    ['openai-chat', { ...chat, reasoning_effort: 'high' }],
    ['openai-responses', { input: 'a', reasoning: { effort: 'high', summary: 'auto' } }],
  ] as const)('is read from %s, and rubbish there is none', (name, body) => {
    const dialect = dialects[name];
    expect(dialect.parse(body)).toMatchObject({ requested: { effort: 'high' }, unknown: [] });
    for (const rubbish of [null, 7, [], {}, '']) {
      const text = JSON.stringify(body).replace('"high"', JSON.stringify(rubbish));
      expect(dialect.parse(JSON.parse(text)).requested).toEqual({});
    }
  });
});
