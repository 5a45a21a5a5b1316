import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adapterByName, adapters } from '../registry.js';
import type { TranscriptAgent } from '@treeward/telemetry';

const lines = (...objects: object[]): Buffer =>
  Buffer.from(objects.map((line) => JSON.stringify(line)).join('\n'));
const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const parse = (harness: string, files: Record<string, Buffer>): TranscriptAgent[] =>
  adapterByName(harness).parseTranscript!(new Map(Object.entries(files)));

/** Synthetic lines in the shapes that the harnesses write; all wording is our own. */
describe('parseTranscript', () => {
  it('joins the blocks of one reply of Claude Code and follows links through bookkeeping', () => {
    const stamp = '2026-01-01T00:00:01.000Z';
    const block = (uuid: string, parentUuid: string, content: object): object => ({
      type: 'assistant',
      uuid,
      parentUuid,
      timestamp: stamp,
      message: { id: 'm1', role: 'assistant', content: [content] },
    });
    const [main, child] = parse('claude-code', {
      '-w/s/subagents/agent-a1.meta.json': json({ toolUseId: 't2', spawnDepth: 1 }),
      '-w/s/subagents/agent-a1.jsonl': lines({
        type: 'user',
        uuid: 'c1',
        parentUuid: null,
        message: { content: 'Go.' },
      }),
      '-w/s.jsonl': lines(
        { type: 'queue-operation', operation: 'enqueue' },
        {
          type: 'user',
          uuid: 'u1',
          parentUuid: null,
          timestamp: stamp,
          message: { role: 'user', content: 'Do it.' },
        },
        { type: 'attachment', uuid: 'x1', parentUuid: 'u1' },
        block('b1', 'x1', { type: 'text', text: 'Two.' }),
        block('b2', 'b1', { type: 'tool_use', id: 't2', name: 'Agent', input: { prompt: 'Go.' } }),
        {
          type: 'user',
          uuid: 'r1',
          parentUuid: 'b2',
          message: {
            content: [{ type: 'tool_result', tool_use_id: 't2', content: [{ type: 'text', text: 'Went.' }] }],
          },
        },
        {
          type: 'system',
          subtype: 'compact_boundary',
          uuid: 'k1',
          parentUuid: null,
          logicalParentUuid: 'r1',
        },
        {
          type: 'user',
          isCompactSummary: true,
          uuid: 'k2',
          parentUuid: 'k1',
          message: { content: 'It went.' },
        },
      ),
    });
    expect(main).toEqual({
      agent: '',
      parentAgent: null,
      spawnedBy: null,
      file: '-w/s.jsonl',
      entries: [
        { id: 'u1', parent: null, time: 1767225601000, kind: 'user', text: 'Do it.' },
        {
          id: 'b1',
          parent: 'u1',
          time: 1767225601000,
          kind: 'assistant',
          parts: [
            { type: 'text', text: 'Two.' },
            { type: 'tool_call', id: 't2', name: 'Agent', arguments: { prompt: 'Go.' } },
          ],
        },
        { id: 'r1', parent: 'b1', time: null, kind: 'tool', text: 'Went.' },
        { id: 'k1', parent: 'r1', time: null, kind: 'compaction' },
        { id: 'k2', parent: 'k1', time: null, kind: 'compaction', text: 'It went.' },
      ],
    });
    expect(child).toMatchObject({ agent: 'a1', parentAgent: '', spawnedBy: 't2' });
  });

  it('finds who started whom in the files of OpenClaw', () => {
    const key = 'agent:main:subagent:9-9';
    const [main, child] = parse('openclaw', {
      'c.jsonl': lines(
        { type: 'session', id: 'c' },
        { type: 'message', id: 'u', parentId: null, message: { role: 'user', content: 'Go.' } },
      ),
      'm.jsonl': lines(
        { type: 'session', id: 'm' },
        { type: 'model_change', id: 'x', parentId: null },
        {
          type: 'message',
          id: 'a',
          parentId: 'x',
          message: {
            role: 'assistant',
            content: [{ type: 'toolCall', id: 't1', name: 'sessions_spawn', arguments: {} }],
          },
        },
        {
          type: 'message',
          id: 'r',
          parentId: 'a',
          message: {
            role: 'toolResult',
            toolCallId: 't1',
            toolName: 'sessions_spawn',
            content: [{ type: 'text', text: JSON.stringify({ childSessionKey: key }) }],
          },
        },
        { type: 'compaction', id: 'k', parentId: 'r', summary: 'Spawned.' },
      ),
      'm.trajectory.jsonl': lines({ type: 'message', id: 'no' }),
      'sessions.json': json({
        'agent:main:explicit:m': { sessionId: 'm' },
        [key]: { sessionId: 'c', spawnedBy: 'agent:main:explicit:m' },
      }),
    });
    expect(main!.entries.map(({ id, parent, kind }) => [id, parent, kind])).toEqual([
      ['a', null, 'assistant'],
      ['r', 'a', 'tool'],
      ['k', 'r', 'compaction'],
    ]);
    expect(child).toMatchObject({ agent: '9-9', parentAgent: '', spawnedBy: 't1', file: 'c.jsonl' });
  });

  it('groups the items of codex into replies', () => {
    const item = (payload: object): object => ({ type: 'response_item', payload });
    const said = (text: string): object =>
      item({ type: 'message', id: text, role: 'assistant', content: [{ text }] });
    const usage = { type: 'token_usage_record', payload: {} };
    const [main, child] = parse('codex', {
      'rollout-t.jsonl': lines({
        type: 'session_meta',
        payload: {
          id: 't',
          session_id: 's',
          source: { subagent: { thread_spawn: { parent_thread_id: 's' } } },
        },
      }),
      'rollout-s.jsonl': lines(
        { type: 'session_meta', payload: { id: 's', session_id: 's' } },
        item({ type: 'message', id: 'u', role: 'user', content: [{ type: 'input_text', text: 'Do it.' }] }),
        said('one'),
        item({
          type: 'function_call',
          id: 'f',
          call_id: 'c1',
          name: 'exec_command',
          arguments: '{"cmd":"ls"}',
        }),
        usage,
        item({ type: 'function_call_output', id: 'o', call_id: 'c1', output: '{"agent_id":"t"}' }),
        said('two'),
        usage,
        said('three'),
        { type: 'compacted', payload: { message: 'All of it.' } },
      ),
    });
    expect(main!.entries.map(({ kind, text, parts }) => [kind, parts?.length ?? text])).toEqual([
      ['user', 'Do it.'],
      ['assistant', 2],
      ['tool', '{"agent_id":"t"}'],
      ['assistant', 1],
      ['assistant', 1],
      ['compaction', 'All of it.'],
    ]);
    expect(main!.entries[1]!.parts![1]).toEqual({
      type: 'tool_call',
      id: 'c1',
      name: 'exec_command',
      arguments: { cmd: 'ls' },
    });
    expect(child).toMatchObject({ agent: 't', parentAgent: '', spawnedBy: 'c1' });
  });

  it('reads the tables of opencode', () => {
    const row = (id: string, session: string, message: string | null, data: object): object => ({
      id,
      session,
      message,
      time: 5,
      data: JSON.stringify(data),
    });
    const [main, child] = parse('opencode', {
      'sessions.json': json({
        sessions: [
          { id: 's', parent: null },
          { id: 'c', parent: 's' },
        ],
        messages: [row('m1', 's', null, { role: 'user' }), row('m2', 's', null, { role: 'assistant' })],
        parts: [
          row('p1', 's', 'm1', { type: 'text', text: 'Do it.' }),
          row('p2', 's', 'm2', { type: 'step-start' }),
          row('p3', 's', 'm2', {
            type: 'tool',
            tool: 'task',
            callID: 't1',
            state: {
              input: { prompt: 'Go.' },
              output: 'Went.',
              metadata: { sessionId: 'c' },
              time: { end: 7 },
            },
          }),
        ],
      }),
    });
    expect(main!.entries).toEqual([
      { id: 'm1', parent: null, time: 5, kind: 'user', text: 'Do it.' },
      {
        id: 'm2',
        parent: 'm1',
        time: 5,
        kind: 'assistant',
        parts: [{ type: 'tool_call', id: 't1', name: 'task', arguments: { prompt: 'Go.' } }],
      },
      { id: 'm2/t1', parent: 'm2', time: 7, kind: 'tool', text: 'Went.' },
    ]);
    expect(child).toMatchObject({ agent: 'c', parentAgent: '', spawnedBy: 't1', entries: [] });
  });

  it('keeps a discarded reply of agent-loop beside the one that took its place', () => {
    const message = (content: string): object => ({ role: 'assistant', content });
    const [main] = parse('agent-loop', {
      't.jsonl': lines(
        { type: 'session', time: 1, messages: [{ role: 'user', content: 'Do it.' }] },
        { type: 'discarded', time: 2, message: message('<call>') },
        { type: 'message', time: 3, message: message('Done.') },
        { type: 'end', time: 3 },
      ),
    });
    expect(main!.entries.map(({ id, parent, kind }) => [id, parent, kind])).toEqual([
      ['0', null, 'user'],
      ['1', '0', 'assistant'],
      ['2', '0', 'assistant'],
    ]);
  });

  it.each(['codex', 'claude-code'])('of %s gives nothing that is nested too deeply for a record', (name) => {
    const deep = '['.repeat(9000) + ']'.repeat(9000);
    const item = `{"type":"response_item","payload":{"type":"function_call","name":"f","call_id":"c","arguments":`;
    const use = `{"type":"assistant","uuid":"a","message":{"content":[{"type":"tool_use","id":"c","name":"f","input":`;
    const texts = [
      `${item}${JSON.stringify(`{"a":${deep}}`)}}}`,
      `${item}{"a":${deep}}}}`,
      `${use}{"a":${deep}}}]}}`,
      `${use}${JSON.stringify(`{"a":${deep}}`)}}]}}`,
    ];
    const agents = parse(name, { 'rollout-s.jsonl': Buffer.from(texts.join('\n')) });
    expect(() => JSON.stringify(agents)).not.toThrow();
  });

  it.each(adapters.map((adapter) => [adapter.name]))('of %s reads what it can of any files', (name) => {
    const value = fc.oneof(fc.json(), fc.string());
    const file = fc.constantFrom(
      's.jsonl',
      'sessions.json',
      'x/subagents/agent-1.jsonl',
      'x/subagents/agent-1.meta.json',
    );
    fc.assert(
      fc.property(fc.dictionary(file, fc.array(value)), (files) => {
        const given = Object.entries(files).map(
          ([path, list]) => [path, Buffer.from(list.join('\n'))] as const,
        );
        for (const { entries } of adapterByName(name).parseTranscript!(new Map(given))) {
          for (const { text } of entries) expect((text ?? '').length).toBeLessThanOrEqual(4000);
        }
      }),
    );
  });
});
