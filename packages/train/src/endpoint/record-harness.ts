import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { TreewardError, writeFileAtomic } from '@treeward/base';
import { Gateway } from '@treeward/gateway';
import type { HarnessAdapter } from '@treeward/harness-adapters';
import { BpeTokenizer, CompactTemplate, createEngine, type EngineConfig } from '@treeward/policy';
import { settle } from '@treeward/rollout';
import { appendEvents } from '@treeward/telemetry';
import { checkpointFolder } from '../checkpoint-folder.js';
import { openFront, type Front } from './front.js';
import { hostSession } from './host-session.js';

/** Of an adapter's environment, what belongs to its sandbox and not to the endpoint. */
const SANDBOX_ONLY = new Set(['PATH', 'HOME', 'TERM', 'LANG', 'NO_COLOR', 'IS_SANDBOX']);

export interface RecordHarness {
  adapter: HarnessAdapter;
  command: readonly string[];
  /** Receives telemetry.ndjson, tokens.bin, transcript/ and, for a harness configured by files, its private home/. */
  out: string;
  upstream: EngineConfig;
  maxTokens: number;
  /** Where the command's own output goes. */
  stdout: 'inherit' | 'stderr';
}

/**
 * Runs a harness as the user, on this machine, with a recording gateway between it and the upstream. Resolves with its exit
 * code once the record is complete. @throws TreewardError CLI_E_COMMAND, ENGINE_E_*
 */
export async function recordHarness(options: RecordHarness): Promise<number | null> {
  const { adapter, command, out, upstream, maxTokens } = options;
  const session = hostSession('record', join(out, 'home'), process.cwd());
  const engine = await createEngine(upstream);
  const tokenizer = join(await checkpointFolder('datasets/cold-start', 'tokenizer'), 'tokenizer.json');
  const gateway = new Gateway({
    engine,
    // The ids of a text-only upstream are surrogates; any tokenizer with a byte fallback will do.
    template: new CompactTemplate(BpeTokenizer.load(tokenizer)),
    canonicalise: () => (messages) => adapter.canonicalise(messages),
    identify: () => (request) => adapter.identify?.(request) ?? {},
  });
  const sockets = mkdtempSync(join(tmpdir(), 'tw-rec-'));
  const rolloutId = basename(out);
  let front: Front | null = null;
  try {
    const { key, socketPath } = await gateway.open({
      rolloutId,
      socketDirectory: sockets,
      recordDirectory: out,
      harness: adapter.name,
      labels: { harness: adapter.name, command: command.join(' ').slice(0, 400), upstream: upstream.kind },
      seed: rolloutId,
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens },
      samplingFrom: 'request',
      budget: { maxCalls: Number.MAX_SAFE_INTEGER, maxTokens: Number.MAX_SAFE_INTEGER },
    });
    front = await openFront({
      port: 0,
      key,
      target: (path) => Promise.resolve({ socketPath, key, path }),
    });
    const endpoint = { baseUrl: front.url, key, rolloutId };
    await adapter.prepare(session, endpoint);
    const installed = { version: adapter.pin, mounts: [], entry: command[0]! };
    const task = { prompt: '', maxTurns: Number.MAX_SAFE_INTEGER };
    const { run } = adapter.command(session, installed, task, endpoint);
    const environment = Object.fromEntries(
      Object.entries(run.env ?? {}).filter(([name]) => !SANDBOX_ONLY.has(name)),
    );
    // Without files of ours the user's own HOME stays, with their settings and plugins.
    const home = session.written.length > 0 ? { HOME: session.home } : {};
    const exit = await runCommand(command, { ...process.env, ...environment, ...home }, options.stdout);
    await settle(gateway, rolloutId);
    await gateway.close(rolloutId);
    const files =
      session.written.length > 0 ? await adapter.readTranscript(session, task, endpoint) : new Map();
    for (const [name, bytes] of files) writeFileAtomic(join(out, 'transcript', name), bytes);
    const agents = adapter.parseTranscript?.(files) ?? [];
    await appendEvents(out, [
      { type: 'process.exit', time: Date.now(), ...exit, timedOut: false },
      ...(agents.length ? [{ type: 'transcript' as const, time: Date.now(), agents }] : []),
      { type: 'rollout.end', time: Date.now(), status: 'completed' },
    ]);
    return exit.code;
  } finally {
    await front?.close();
    await gateway.dispose();
    await engine.close();
    rmSync(sockets, { recursive: true, force: true });
  }
}

/** In the user's terminal. @throws TreewardError CLI_E_COMMAND when it cannot be started */
function runCommand(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  stdout: RecordHarness['stdout'],
): Promise<{ code: number | null; signal: string | null }> {
  return new Promise((done, reject) => {
    const child = spawn(command[0]!, command.slice(1), {
      env,
      stdio: ['inherit', stdout === 'stderr' ? 2 : 'inherit', 'inherit'],
    });
    // Ctrl-C reaches the command too: let it end, then write down what happened.
    const ignore = (): void => undefined;
    process.on('SIGINT', ignore);
    child.once('error', (cause) => {
      process.off('SIGINT', ignore);
      reject(new TreewardError('CLI_E_COMMAND', `cannot start ${command[0]}: ${cause.message}`, { cause }));
    });
    child.once('close', (code, signal) => {
      process.off('SIGINT', ignore);
      done({ code, signal });
    });
  });
}
