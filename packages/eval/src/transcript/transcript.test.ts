import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { adapters, toolCall } from '@treeward/harness-adapters';
import { writeRecord, type Call } from '../testing/record.js';
import { canonicalCall } from './canonical-tools.js';
import { readEpisode } from './conversations.js';
import { finalMessage, summariseTranscript, transcriptEvents, type EventContent } from './events.js';

const text = (said: string) => ({ type: 'text' as const, text: said });
const use = (name: string, args: Record<string, unknown>, id = name) => ({
  type: 'tool_call' as const,
  id,
  name,
  arguments: args,
});
const episodeOf = async (calls: Call[], harness = 'claude-code') => {
  const directory = mkdtempSync(join(tmpdir(), 'transcript-'));
  await writeRecord(directory, harness, calls);
  return readEpisode(directory);
};
const said = (content: readonly EventContent[]) =>
  content.map((part) =>
    part.type === 'text' ? part.text : `${part.name}(${JSON.stringify(part.arguments)})`,
  );
const lines = (events: ReturnType<typeof transcriptEvents>) =>
  events.map(({ message }) => `${message.role}: ${said(message.content).join(' ')}`);

describe('canonical tools (complaints #54 #86 #306 #307: name and argument variants)', () => {
  it.each(adapters.map((adapter) => [adapter.name, adapter] as const))(
    '%s: its four verbs become OpenClaw’s',
    (name, adapter) => {
      const call = (verb: 'read' | 'write' | 'edit' | 'exec', ...values: string[]) =>
        canonicalCall(name, toolCall(adapter.tools[verb], values));
      const shell = adapter.tools.read.shell !== undefined;
      expect(call('exec', 'ls -l')).toEqual({ name: 'exec', arguments: { command: 'ls -l' } });
      expect(call('read', 'a.txt')).toEqual(
        shell
          ? { name: 'exec', arguments: { command: expect.stringContaining('a.txt') } }
          : { name: 'read', arguments: { path: 'a.txt' } },
      );
      if (shell) return;
      expect(call('write', 'a.txt', 'x')).toEqual({
        name: 'write',
        arguments: { path: 'a.txt', content: 'x' },
      });
      expect(call('edit', 'a.txt', 'x', 'y')).toEqual({
        name: 'edit',
        arguments: { path: 'a.txt', oldText: 'x', newText: 'y' },
      });
    },
  );

  it.each([
    ['read_file', { file_path: 'a' }, 'read', { path: 'a' }],
    ['Read', { path: 'a', limit: 3 }, 'read', { path: 'a', limit: 3 }],
    ['readFile', { files: ['a', 'b'] }, 'read', { path: 'a' }],
    ['read', { files: [{ path: 'a' }] }, 'read', { path: 'a' }],
    ['local_shell', { command: ['bash', '-lc', 'ls -l'] }, 'exec', { command: 'ls -l' }],
    ['shell', { cmd: ['ls', '-l'] }, 'exec', { command: 'ls -l' }],
    ['WebFetch', { url: 'u' }, 'web_fetch', { url: 'u' }],
    ['Task', { prompt: 'p' }, 'sessions_spawn', { prompt: 'p' }],
    ['mcp__bank__pay', { sum: 1 }, 'mcp__bank__pay', { sum: 1 }],
  ])('%s(%j)', (name, args, canonical, renamed) => {
    expect(canonicalCall('unknown', { name, arguments: args })).toEqual({
      name: canonical,
      arguments: renamed,
    });
  });
});

describe('the transcript made from our record', () => {
  const first: Call = {
    messages: [
      { role: 'system', text: 'S' },
      { role: 'user', text: 'Do it.' },
    ],
    reply: [use('Read', { file_path: 'a' }, 'c1')],
  };
  const second: Call = {
    parent: 0,
    messages: [{ role: 'tool', callId: 'c1', text: 'content' }],
    reply: [text('Done.')],
  };

  it('is in PinchBench’s event form: canonical name, the original in extra, usage of each reply', async () => {
    const events = transcriptEvents(await episodeOf([first, second]), { input: 2, output: 10 });
    expect(events[0]).toEqual({ type: 'message', message: { role: 'user', content: [text('Do it.')] } });
    expect(events[1]).toEqual({
      type: 'message',
      message: {
        role: 'assistant',
        content: [
          {
            type: 'toolCall',
            id: 'c1',
            name: 'read',
            arguments: { path: 'a' },
            extra: { name: 'Read', arguments: { file_path: 'a' } },
          },
        ],
        usage: { input: 3, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 5, cost: { total: 26e-6 } },
      },
    });
    expect(events[2]!.message).toMatchObject({
      role: 'toolResult',
      toolCallId: 'c1',
      toolName: 'read',
      content: [text('content')],
    });
    expect(finalMessage(await episodeOf([first, second]))).toBe('Done.');
  });

  it('a retried reply that the harness dropped is not in it', async () => {
    const retried: Call = { ...first, reply: [text('Lost.')] };
    const episode = await episodeOf([
      retried,
      { parent: 0, keep: 2, messages: [], reply: [use('Read', { file_path: 'a' }, 'c1')] },
      { ...second, parent: 1 },
    ]);
    expect(lines(transcriptEvents(episode))).toEqual([
      'user: Do it.',
      'assistant: read({"path":"a"})',
      'toolResult: content',
      'assistant: Done.',
    ]);
  });

  it('titles, sub-agents and summaries are not in it, even when they come last', async () => {
    const title: Call = {
      messages: [{ role: 'user', text: 'Title?' }],
      reply: [text('A title')],
      tools: false,
    };
    const agent: Call = {
      messages: [{ role: 'user', text: 'Sub.' }],
      reply: [text('sub done')],
      identity: { agent: 'a1', requestClass: 'subagent' },
    };
    const summary: Call = {
      messages: [{ role: 'user', text: 'Summarise.' }],
      reply: [text('summary')],
      identity: { requestClass: 'compaction' },
    };
    const events = transcriptEvents(
      await episodeOf([title, first, agent, { ...second, parent: 1 }, summary]),
    );
    expect(lines(events)).toEqual([
      'user: Do it.',
      'assistant: read({"path":"a"})',
      'toolResult: content',
      'assistant: Done.',
    ]);
  });

  it('of several sessions: one after the other, each with its number', async () => {
    const other: Call = { messages: [{ role: 'user', text: 'Again.' }], reply: [text('Yes.')] };
    const events = transcriptEvents(await episodeOf([first, second, other]));
    expect(events.map(({ extra }) => extra?.conversation)).toEqual([0, 0, 0, 0, 1, 1]);
    expect(finalMessage(await episodeOf([first, second, other]))).toBe('Yes.');
  });

  it('is empty when nothing was sampled', async () => {
    const episode = await episodeOf([]);
    expect([transcriptEvents(episode), finalMessage(episode)]).toEqual([[], '']);
  });

  it('a judge is shown a short one: arguments and results at 200 characters, text at 2000', async () => {
    const long: Call[] = [
      {
        messages: [{ role: 'user', text: 'u' }],
        reply: [use('Write', { file_path: 'a', content: 'w'.repeat(500) }, 'c1')],
      },
      {
        parent: 0,
        messages: [{ role: 'tool', callId: 'c1', text: 'r'.repeat(500) }],
        reply: [text('t'.repeat(3000))],
      },
    ];
    const [, tool, result, agent] = summariseTranscript(transcriptEvents(await episodeOf(long))).split('\n');
    expect(tool!.length).toBeLessThan(260);
    expect(result).toBe(`Result: ${'r'.repeat(200)} […300 characters cut]`);
    expect(agent).toBe(`Agent: ${'t'.repeat(2000)} […1000 characters cut]`);
  });
});
