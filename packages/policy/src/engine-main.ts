import { endWithParent, toPlainError } from '@treeward/base';
import { checkEngineEnvironment, createEngine, type EngineConfig } from './engine-config.js';
import { serveEngine } from './engine-server.js';

// Process entry: node engine-main.js <socketPath> <configJson>. Ready when the socket answers. Ends when its parent's
// IPC channel closes or at SIGTERM; Ctrl-C is the parent's business, which still needs the engine while it saves.
const [socketPath, configJson] = process.argv.slice(2);

try {
  if (!socketPath || !configJson) throw new Error('usage: engine-main.js <socketPath> <configJson>');
  const config = JSON.parse(configJson) as EngineConfig;
  checkEngineEnvironment(config);
  const engine = await createEngine(config);
  const server = await serveEngine(socketPath, engine);
  const end = async (): Promise<void> => {
    // The engine first: closing it lets the current token finish, and llama must not be decoding when we exit.
    await engine.close();
    await server.close();
    process.exit(0);
  };
  let ending: Promise<void> | null = null;
  const endOnce = (): void => {
    ending ??= end().catch(fail);
  };
  const forked = endWithParent(endOnce);
  process.on('SIGINT', forked ? () => undefined : endOnce);
  process.on('SIGTERM', endOnce);
  process.send?.({ ready: true });
} catch (error) {
  fail(error);
}

function fail(error: unknown): void {
  const { code, message } = toPlainError(error);
  process.stderr.write(`engine: ${code}: ${message}\n`);
  process.exit(1);
}
