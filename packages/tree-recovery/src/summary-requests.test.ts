import { describe, expect, it } from 'vitest';
import { recoverTree } from './recover.js';
import { RecordBuilder, type BuiltCall } from './testing/record-builder.js';

// Requests for a summary as a real harness sends them: without tools, in a conversation of their own.
const user = (text: string) => ({ role: 'user', text });
const text = (value: string) => [{ type: 'text', text: value }];
const TOOLS = ['exec'];
const SUMMARY = 'Some files were counted and all of them were found.';

const root = (
  call: number,
  appended: ReturnType<typeof user>[],
  more: Partial<BuiltCall> = {},
): BuiltCall => ({
  call,
  start: 10 * call + 1,
  finish: 10 * call + 2,
  prompt: [1, 10 + call],
  reply: [30 + call],
  messages: { parent: null, kept: 0, appended },
  tools: TOOLS,
  ...more,
});
const edges = (...calls: BuiltCall[]) => {
  const builder = new RecordBuilder();
  for (const call of calls) builder.call(call);
  return recoverTree(builder.end().record()).edges.map(({ from, to, type }) => [from, to, type]);
};

const work = root(0, [user('Count the files.')], {
  parts: text('There are twelve of them, in three folders.'),
});
const summary = (call: number, conversation: string, more: Partial<BuiltCall> = {}): BuiltCall =>
  root(call, [user(`${conversation}\nThese are the messages of a conversation. Summarize them.`)], {
    tools: [],
    parts: text(SUMMARY),
    ...more,
  });
const goesOnFrom = (call: number): BuiltCall =>
  root(call, [user(`It was summed up as follows: ${SUMMARY}`), user('And the folders?')], {
    parts: text('Three.'),
  });

describe('a request for a summary', () => {
  it('that quotes nothing belongs to the one main agent, if headers say what it is', () => {
    const identity = { requestClass: 'compaction' } as const;
    expect(edges(work, summary(1, '<conversation></conversation>', { identity }), goesOnFrom(2))).toEqual([
      [0, 1, 'compaction'],
      [1, 2, 'compaction'],
    ]);
  });

  it('that quotes an earlier summary sums up what went on from that one', () => {
    const quoted = '<conversation>There are twelve of them, in three folders.</conversation>';
    const identity = { requestClass: 'compaction' } as const;
    const update = `<conversation></conversation><previous>${SUMMARY}</previous>`;
    expect(edges(work, summary(1, quoted, { identity }), goesOnFrom(2), summary(3, update))).toEqual([
      [0, 1, 'compaction'],
      [1, 2, 'compaction'],
      [2, 3, 'compaction'],
    ]);
  });
});
