import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { randomStream } from '@treeward/base';
import { BpeTokenizer, CompactTemplate } from '@treeward/policy';
import type { Conversation } from '@treeward/rollout';
import { CONTEXT_WEIGHT, demonstrationRow, malformedRow, packRows } from './demonstration-rows.js';

const tokenizer = BpeTokenizer.load(
  fileURLToPath(new URL('../../../../datasets/cold-start/tokenizer.json', import.meta.url)),
);
const template = new CompactTemplate(tokenizer);
const conversation: Conversation = {
  tools: [
    {
      name: 'edit',
      description: '',
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    },
  ],
  messages: [
    { role: 'user', text: 'Ask ana.' },
    {
      role: 'assistant',
      parts: [
        {
          type: 'tool_call',
          id: 'x',
          name: 'edit',
          arguments: { path: 'ana.txt', edits: [{ oldText: 'ana', newText: 'ben' }] },
        },
      ],
    },
    { role: 'tool', callId: 'x', text: 'ana is here' },
    { role: 'assistant', parts: [{ type: 'text', text: 'Done.' }] },
  ],
};
const rename = (text: string): string => text.replaceAll('ana', 'zoe');

describe('demonstrationRow', () => {
  const row = demonstrationRow(conversation, template, rename);

  it('renames in instruction, calls (nested too) and results alike', () => {
    expect(template.decode(row.tokens_T)).toBe(
      '<sys>edit(path)<user>Ask zoe.<asst><call>edit<arg>path<eq>zoe.txt<arg>edits.0.oldText<eq>zoe<arg>edits.0.newText<eq>ben<end>' +
        '<res>zoe is here<asst>Done.<eot>',
    );
  });

  it('weighs what the policy says 1, the rest a little, the first token not at all', () => {
    const spoken = [...row.tokens_T].filter((_, t) => row.weight_T[t] === 1);
    expect(template.decode(Int32Array.from(spoken))).toMatch(/^<call>edit.*<end>Done\.<eot>$/);
    expect(new Set(row.weight_T)).toEqual(new Set([0, Math.fround(CONTEXT_WEIGHT), 1]));
    expect(row.weight_T.indexOf(0)).toBe(0);
  });
});

describe('malformedRow', () => {
  it('ends in a call that the template cannot parse, and trains nothing else', () => {
    const row = malformedRow(conversation, template, rename, tokenizer.special('<eq>'), randomStream(1))!;
    const attempt = row.tokens_T.filter((_, t) => row.weight_T[t] === 1);
    expect(template.parse(Int32Array.from(attempt)).malformed).toBeDefined();
    expect([...row.weight_T].every((weight) => weight === 0 || weight === 1)).toBe(true);
  });
});

describe('packRows', () => {
  it('lays rows end to end', () => {
    const rows = [
      demonstrationRow(conversation, template, rename),
      demonstrationRow(conversation, template, (text) => text),
    ];
    const packed = packRows(rows);
    expect([...packed.rowStart_B1]).toEqual([
      0,
      rows[0]!.tokens_T.length,
      rows[0]!.tokens_T.length + rows[1]!.tokens_T.length,
    ]);
    expect([...packed.tokens_T]).toEqual(rows.flatMap((row) => [...row.tokens_T]));
    expect([...packed.owned_T]).toEqual(
      rows.flatMap((row) => [...row.weight_T].map((weight) => (weight > 0 ? 1 : 0))),
    );
  });
});
