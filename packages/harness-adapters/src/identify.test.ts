import type { Message, ToolSpec } from '@treeward/messages';
import type { Identity } from '@treeward/telemetry';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adapterByName, adapters } from './registry.js';

const TOOL: ToolSpec = { name: 'read', description: '', parameters: {} };
const user = (text: string): Message => ({ role: 'user', text });
const system = (text: string): Message => ({ role: 'system', text });
const reply: Message = { role: 'assistant', parts: [{ type: 'text', text: 'ok' }] };

function identity(
  harness: string,
  headers: Record<string, string>,
  messages: Message[] = [user('Go.')],
  tools: ToolSpec[] = [TOOL],
): Identity {
  return adapterByName(harness).identify!({ headers, messages, tools });
}

describe('identify', () => {
  it('reads the headers of Claude Code', () => {
    const session = { 'x-claude-code-session-id': 's' };
    const agent = { ...session, 'x-claude-code-agent-id': 'a', 'x-claude-code-request-class': 'subagent' };
    expect(identity('claude-code', session)).toEqual({ session: 's', requestClass: 'main', depth: 0 });
    expect(identity('claude-code', agent)).toEqual({
      session: 's',
      agent: 'a',
      requestClass: 'subagent',
      depth: 1,
    });
    expect(identity('claude-code', { ...agent, 'x-claude-code-parent-agent-id': 'p' })).toEqual({
      session: 's',
      agent: 'a',
      parentAgent: 'p',
      requestClass: 'subagent',
    });
    expect(
      identity('claude-code', { ...session, 'x-claude-code-request-class': 'compaction' }),
    ).toMatchObject({
      requestClass: 'compaction',
    });
    expect(identity('claude-code', { ...session, 'x-claude-code-context-compacted': 'auto' })).toMatchObject({
      requestClass: 'main',
      compacted: true,
    });
  });

  it('knows a sub-agent of Claude Code by the mark in its first system block, where headers are gone', () => {
    const marked = system('x-anthropic-billing-header: cc_version=1; cc_is_subagent=true;');
    expect(identity('claude-code', {}, [marked, user('Go.')])).toEqual({ requestClass: 'subagent' });
    expect(identity('claude-code', {}, [system('You are.'), user('cc_is_subagent=true')])).toEqual({
      requestClass: 'main',
      depth: 0,
    });
  });

  it('reads prompts of OpenClaw', () => {
    const task = (what: string, minute: string): Message =>
      user(`[Sun 2026-01-04 10:0${minute} UTC] [Subagent Context] You help. (depth 2/3). Go.\n\n${what}`);
    const child = identity('openclaw', {}, [system('You are.'), task('A', '1')]);
    expect(child).toMatchObject({ requestClass: 'subagent', depth: 2 });
    expect(identity('openclaw', {}, [task('A', '2'), reply])).toEqual(child);
    expect(identity('openclaw', {}, [task('B', '1')]).agent).not.toBe(child.agent);
    const runtime = (session: string): Message =>
      system(`Text\nRuntime: agent=main | session=${session} | sessionId=11-22\nText`);
    expect(identity('openclaw', {}, [runtime('agent:main:explicit:11-22'), user('Go.')])).toEqual({
      session: '11-22',
      requestClass: 'main',
      depth: 0,
    });
    expect(identity('openclaw', {}, [runtime('agent:main:subagent:33-44'), user('Go.')])).toMatchObject({
      agent: '33-44',
      requestClass: 'subagent',
    });
    expect(identity('openclaw', {}, [user('<conversation>\nlong')], [])).toMatchObject({
      requestClass: 'compaction',
    });
  });

  it('reads the headers of codex', () => {
    expect(identity('codex', { 'session-id': 's', 'thread-id': 's' })).toEqual({
      session: 's',
      requestClass: 'main',
      depth: 0,
    });
    const turn = (facts: object): Record<string, string> => ({
      'x-codex-turn-metadata': JSON.stringify(facts),
    });
    expect(
      identity('codex', { 'session-id': 's', 'thread-id': 't', ...turn({ parent_thread_id: 'p' }) }),
    ).toEqual({
      session: 's',
      agent: 't',
      parentAgent: 'p',
      requestClass: 'subagent',
    });
    expect(identity('codex', turn({ session_id: 's', thread_id: 's', request_kind: 'compaction' }))).toEqual({
      session: 's',
      requestClass: 'compaction',
      depth: 0,
    });
  });

  it('tells the work of opencode from its titles and summaries', () => {
    const main = { 'x-session-id': 's' };
    expect(identity('opencode', main)).toEqual({ session: 's', requestClass: 'main', depth: 0 });
    expect(identity('opencode', main, [user('Go.')], [])).toMatchObject({ requestClass: 'side' });
    expect(identity('opencode', main, [user('Go.'), reply], [])).toMatchObject({
      requestClass: 'compaction',
    });
    expect(identity('opencode', { 'x-session-id': 'c', 'x-parent-session-id': 's' })).toEqual({
      session: 's',
      agent: 'c',
      requestClass: 'subagent',
    });
  });

  it('knows of pi what its tools say', () => {
    expect(identity('pi', {})).toEqual({ requestClass: 'main', depth: 0 });
    expect(identity('pi', {}, [user('Go.')], [])).toMatchObject({ requestClass: 'compaction' });
  });

  it.each(adapters.map((adapter) => [adapter.name]))('of %s takes any headers', (name) => {
    const header = fc.constantFrom(
      'session-id',
      'thread-id',
      'x-session-id',
      'x-codex-turn-metadata',
      'x-claude-code-agent-id',
    );
    fc.assert(
      fc.property(fc.dictionary(header, fc.oneof(fc.string(), fc.json())), fc.string(), (headers, text) => {
        const { requestClass } = identity(name, headers, [system(text), user(text)]);
        expect(['main', 'subagent', 'compaction', 'side']).toContain(requestClass);
      }),
    );
  });
});
