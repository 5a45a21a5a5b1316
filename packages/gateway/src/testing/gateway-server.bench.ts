/**
 * The server's side of the bench, in a process of its own: the gateway in front of an engine that answers at once, or a bare
 * node:http server that parses the same bodies and says the same bytes. Driven by messages from the client's process.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gateway } from '@treeward/gateway';
import { createTemplate, type Engine, type Sampled, type SampleRequest } from '@treeward/policy';
import { REPLY_TEXT } from './bench-load.js';

export type Order =
  | { kind: 'gateway'; tokenizer: string; rollouts: number }
  | { kind: 'bare'; sockets: number; answer: { type: string; text: string } }
  | { kind: 'memory' | 'look' | 'stop' };

export interface Opened {
  endpoints: { socketPath: string; key: string }[];
}

export interface Looked {
  metrics: string;
  loopDelayP99Ms: number;
  /** This process's, all threads, since the last look. */
  cpuMs: number;
}

const root = mkdtempSync(join(tmpdir(), 'tw-gb-'));
const delay = monitorEventLoopDelay({ resolution: 1 });
let cpu = process.cpuUsage();
let gateway: Gateway | null = null;

async function openGateway(order: Extract<Order, { kind: 'gateway' }>): Promise<Opened> {
  const spec = { kind: 'compact' as const, tokenizer: order.tokenizer };
  const template = createTemplate(spec);
  const tokens = template.reply([{ type: 'text', text: REPLY_TEXT }]);
  const logprobs = new Float32Array(tokens.length).fill(-0.5);
  const policy = { id: 'bench', version: 0 };
  const engine: Engine = {
    describe: async () => ({
      name: 'bench',
      ids: true,
      logprobs: 'processed',
      contextLength: 4_000_000,
      vocabSize: template.vocabSize,
      policy,
    }),
    load: async () => undefined,
    sample: async (_, { prompt, sampling }: SampleRequest): Promise<Sampled> => ({
      prompt,
      tokens,
      logprobs,
      sampling,
      finish: 'stop',
      policy,
    }),
    close: async () => undefined,
  };
  gateway = new Gateway({ engine, template, encodeOn: { template: spec } });
  const endpoints: Opened['endpoints'] = [];
  for (let i = 0; i < order.rollouts; i++) {
    const { key, socketPath } = await gateway.open({
      rolloutId: `r${i}`,
      socketDirectory: join(root, `${i}`),
      recordDirectory: join(root, `${i}`, 'record'),
      harness: 'none',
      labels: {},
      seed: `${i}`,
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 100 },
      budget: { maxCalls: 1e6, maxTokens: 1e9 },
    });
    endpoints.push({ key, socketPath });
  }
  return { endpoints };
}

async function openBare({ sockets, answer }: Extract<Order, { kind: 'bare' }>): Promise<Opened> {
  const endpoints: Opened['endpoints'] = [];
  for (let i = 0; i < sockets; i++) {
    const socketPath = join(root, `${i}.sock`);
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { messages: unknown[] };
        if (body.messages.length === 0) return void response.writeHead(400).end();
        response.writeHead(200, { 'content-type': answer.type }).end(answer.text);
      });
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    endpoints.push({ socketPath, key: 'bare' });
  }
  return { endpoints };
}

function memory(): { bytes: number } {
  for (let i = 0; i < 4; i++) globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return { bytes: heapUsed + external };
}

async function look(): Promise<Looked> {
  const loopDelayP99Ms = Math.max(0, delay.percentile(99) / 1e6 - 1);
  delay.reset();
  const { user, system } = process.cpuUsage(cpu);
  cpu = process.cpuUsage();
  return { metrics: (await gateway?.metricsText()) ?? '', loopDelayP99Ms, cpuMs: (user + system) / 1000 };
}

process.on('message', (order: Order) => {
  const answer = async (): Promise<unknown> => {
    switch (order.kind) {
      case 'gateway':
        return openGateway(order);
      case 'bare':
        return openBare(order);
      case 'memory':
        return memory();
      case 'look':
        return look();
      case 'stop':
        await gateway?.dispose();
        rmSync(root, { recursive: true, force: true });
        return null;
    }
  };
  void answer().then((value) => process.send!(value));
});
process.on('disconnect', () => process.exit(0));
delay.enable();
