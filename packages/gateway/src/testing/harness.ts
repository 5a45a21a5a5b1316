import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BpeTokenizer, CompactTemplate } from '@treeward/policy';
import {
  hashTokens,
  readRecord,
  type CallPrompt,
  type CallSampled,
  type RecordEvent,
} from '@treeward/telemetry';
import { Gateway } from '../gateway.js';
import type { EndpointInfo, GatewayOptions, OpenEndpoint } from '../types.js';
import { ask, type Answer, type Ask } from './client.js';
import { FakeEngine } from './fake-engine.js';

// A few merges are enough to tell merged ids from the bytes that the fake engine says.
export const smallTokenizer = new BpeTokenizer([
  [126, 114],
  [266, 111],
]);
export const template = new CompactTemplate(smallTokenizer);

export interface TestGateway {
  gateway: Gateway;
  engine: FakeEngine;
  open(rolloutId: string, options?: Partial<OpenEndpoint>): Promise<TestRollout>;
  dispose(): Promise<void>;
}

export interface TestRollout extends EndpointInfo {
  id: string;
  directory: string;
  ask(options: Ask): Promise<Answer>;
  /** All events so far; call after `close` to have them all. */
  events(): RecordEvent[];
  /** Of a call's sampled ids. */
  logprobs(call: number): Float32Array;
  /** Whole prompts and replies by call, put together from the deltas; throws when a hash does not fit. */
  tokens(): Map<number, { prompt: Int32Array; sampled: Int32Array | null; graft: CallPrompt['graft'] }>;
}

export function testGateway(options: Partial<GatewayOptions> = {}): TestGateway {
  const root = mkdtempSync(join(tmpdir(), 'tw-gw-'));
  const engine = new FakeEngine(template);
  const gateway = new Gateway({ engine, template, engineRetryMs: 5000, ...options });
  return {
    gateway,
    engine,
    async open(rolloutId, endpoint = {}) {
      const directory = join(root, rolloutId);
      const info = await gateway.open({
        rolloutId,
        socketDirectory: join(directory, 's'),
        recordDirectory: join(directory, 'r'),
        harness: 'none',
        labels: { task: 't' },
        seed: `seed-${rolloutId}`,
        sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 90 },
        budget: { maxCalls: 100, maxTokens: 100_000 },
        ...endpoint,
      });
      return {
        ...info,
        id: rolloutId,
        directory: join(directory, 'r'),
        ask: (request) => ask(info.socketPath, { key: info.key, ...request }),
        events: () => readRecord(join(directory, 'r')).events,
        logprobs: (call) => {
          const record = readRecord(join(directory, 'r'));
          const sampled = record.events.find(
            (event): event is CallSampled => event.type === 'call.sampled' && event.call === call,
          );
          return record.logprobs(sampled!.logprobs)!;
        },
        tokens: () => rebuild(join(directory, 'r')),
      };
    },
    async dispose() {
      await gateway.dispose();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function rebuild(directory: string): ReturnType<TestRollout['tokens']> {
  const record = readRecord(directory);
  const calls: ReturnType<TestRollout['tokens']> = new Map();
  for (const event of record.events) {
    if (event.type === 'call.prompt') {
      const { parent, kept, appended, length, hash } = event.prompt;
      const earlier = parent === null ? null : calls.get(parent)!;
      const source = earlier ? [...earlier.prompt, ...(earlier.sampled ?? [])].slice(0, kept) : [];
      const prompt = Int32Array.of(...source, ...record.tokens(appended)!);
      if (prompt.length !== length || hashTokens(prompt) !== hash) {
        throw new Error(`call ${event.call}: the record's prompt is not the one that was sent`);
      }
      calls.set(event.call, { prompt, sampled: null, graft: event.graft });
    }
    if (event.type === 'call.sampled') calls.get(event.call)!.sampled = record.tokens(event.tokens);
  }
  return calls;
}

export const tools = [
  {
    name: 'Read',
    description: 'reads',
    input_schema: {
      type: 'object',
      properties: { file_path: { type: 'string' } },
      required: ['file_path'],
    },
  },
];

/** A Messages body, and the turn that its answer adds. */
export function messagesBody(messages: unknown[], more: Record<string, unknown> = {}): unknown {
  return { model: 'policy', max_tokens: 1000, system: 'be good', tools, messages, ...more };
}

export const turnOf = (answer: Answer): { role: string; content: unknown } => ({
  role: 'assistant',
  content: answer.json.content,
});

export const resultFor = (answer: Answer, text: string): unknown => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: answer.json.content.at(-1).id, content: text }],
});
