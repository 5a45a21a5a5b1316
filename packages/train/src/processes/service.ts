import { fork, type ChildProcess } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { rpcClient, TreewardError } from '@treeward/base';

export interface ServiceOptions {
  name: string;
  /** The child's entry file. */
  entry: string;
  socketPath: string;
  /** Asked at every start, so that a restarted child begins from the current state (last checkpoint). */
  config: () => unknown;
  env?: Readonly<Record<string, string>>;
  /** Receives the child's stdout and stderr. */
  logFile: string;
  /** The run's folder: in the child's environment, so that a person (or a test) can tell whose it is. */
  runDirectory: string;
  /** Restarts within one run before giving up. @default 5 */
  maxRestarts?: number;
}

/**
 * A child process that serves RPC on a socket and is started again when it dies. The child ends by itself when this process
 * does (its IPC channel closes), also after kill -9. It runs in a process group of its own, so that Ctrl-C in a terminal
 * reaches only the controller, which ends the step first.
 */
export class Service {
  readonly name: string;
  readonly #options: ServiceOptions;
  #child: ChildProcess | null = null;
  #stopping = false;
  #ready: Promise<void> = Promise.resolve();
  restarts = 0;

  constructor(options: ServiceOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when the child answers; after a death, when its successor does. */
  ready(): Promise<void> {
    return this.#ready;
  }

  start(): Promise<void> {
    this.#ready = this.#launch();
    this.#ready.catch(() => undefined); // observed by ready()
    return this.#ready;
  }

  async #launch(): Promise<void> {
    const { entry, socketPath, config, logFile, runDirectory, env } = this.#options;
    const log = openSync(logFile, 'a');
    const child = fork(entry, [socketPath, JSON.stringify(config())], {
      stdio: ['ignore', log, log, 'ipc'],
      detached: true,
      execArgv: [],
      env: { ...process.env, ...env, TREEWARD_RUN: runDirectory },
    });
    this.#child = child;
    const died = new Promise<never>((_, reject) => {
      child.once('exit', (code, signal) =>
        reject(
          new TreewardError(
            'PROCESS_E_START',
            `the ${this.name} process ended (${signal ?? code}) before it was ready${lastError(logFile)}`,
            {
              hints: [`its output is in ${logFile}`],
            },
          ),
        ),
      );
    });
    const ended = new AbortController();
    died.catch(() => ended.abort());
    await Promise.race([this.#answering(ended.signal), died]);
    child.removeAllListeners('exit');
    child.once('exit', (code, signal) => this.#onExit(child, code, signal));
    if (child.exitCode !== null || child.signalCode !== null)
      this.#onExit(child, child.exitCode, child.signalCode);
  }

  /** Resolves when the child answers, or when there is none any more. */
  async #answering(ended: AbortSignal): Promise<void> {
    const client = rpcClient(this.#options.socketPath);
    try {
      while (!ended.aborted) {
        try {
          await client.call('ping');
          return;
        } catch (error) {
          if (TreewardError.isInstance(error) && error.code !== 'RPC_E_UNREACHABLE') return; // it answers
          await sleep(25);
        }
      }
    } finally {
      client.close();
    }
  }

  #onExit(child: ChildProcess, code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#stopping || this.#child !== child) return;
    this.#child = null;
    this.restarts++;
    if (this.restarts > (this.#options.maxRestarts ?? 5)) {
      this.#ready = Promise.reject(
        new TreewardError(
          'PROCESS_E_RESTARTS',
          `the ${this.name} process died ${this.restarts} times (last: ${signal ?? code})`,
          {
            hints: [`its output is in ${this.#options.logFile}`],
          },
        ),
      );
      this.#ready.catch(() => undefined);
      return;
    }
    this.#ready = this.#launch();
    this.#ready.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#ready.catch(() => undefined);
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.disconnect();
    await Promise.race([gone, sleep(3000)]);
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await gone;
  }
}

/** The last line of a child's log that reads like an error, as the end of a sentence. */
function lastError(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').slice(-8000).split('\n');
  const line = lines.findLast((text) => /Error: |[A-Z]_E_[A-Z]/.test(text));
  return line === undefined ? '' : `: ${line.trim().slice(0, 300)}`;
}
