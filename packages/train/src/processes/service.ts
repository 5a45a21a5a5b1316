import { fork, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
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
  /** Deaths in a row, none of them after a minute of service, before it is given up. @default 5 */
  maxRestarts?: number;
  /** Milliseconds that a child may take until it answers; then it counts as dead. @default 600000 */
  startTimeout?: number;
  /**
   * Asked again and again whether it answers; silent for so many questions in a row, each of `everyMs`, it hangs, is killed
   * and started again. @default not asked: who computes for minutes cannot answer
   */
  watch?: { everyMs: number; questions: number };
}

/** A child that has served this long was not started in vain: its death begins a new row. */
const PROVEN_MS = 60_000;

/**
 * A child process that serves RPC on a socket and is started again when it dies, also when that happens while it is being
 * started again. The child ends by itself when this process does (its IPC channel closes), also after kill -9. It runs in
 * a process group of its own, so that Ctrl-C in a terminal reaches only the controller, which ends the step first.
 */
export class Service {
  readonly name: string;
  readonly #options: ServiceOptions;
  #child: ChildProcess | null = null;
  #stopping = false;
  #ready: Promise<void> = Promise.resolve();
  #row = 0;
  #upSince = 0;
  #away = { ms: 0, since: null as number | null };
  readonly #lost = new AbortController();
  restarts = 0;

  constructor(options: ServiceOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Aborted, with the reason, when it died too often and is not started any more. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Milliseconds in which it was dead or starting again, so far. */
  get awayMs(): number {
    const { ms, since } = this.#away;
    return ms + (since === null ? 0 : performance.now() - since);
  }

  /** Resolves when the child answers; after a death, when its successor does. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** @throws TreewardError PROCESS_E_START when the first child ends, or says nothing, before it answers */
  start(): Promise<void> {
    return this.#becoming(this.#launch());
  }

  #becoming(ready: Promise<void>): Promise<void> {
    ready.catch(() => undefined); // observed by ready()
    this.#ready = ready;
    return ready;
  }

  /** Resolves when a new child answers. @throws TreewardError PROCESS_E_START */
  async #launch(): Promise<void> {
    const child = this.#fork();
    this.#child = child;
    let answers = false;
    const died = new Promise<never>((_, reject) => {
      const end = (how: string): void => {
        if (answers) this.#onDeath(child, how);
        else reject(this.#notStarted(how));
      };
      child.once('error', ({ message }) => end(message));
      child.once('exit', (code, signal) => end(String(signal ?? code)));
    });
    const ended = new AbortController();
    child.once('exit', () => ended.abort());
    died.catch(() => ended.abort());
    const { startTimeout = 600_000 } = this.#options;
    const late = setTimeout(() => child.kill('SIGKILL'), startTimeout);
    try {
      await Promise.race([this.#answering(ended.signal), died]);
    } finally {
      clearTimeout(late);
    }
    answers = true;
    this.#upSince = performance.now();
    void this.#watch(child, ended.signal);
  }

  #fork(): ChildProcess {
    const { entry, socketPath, config, logFile, runDirectory, env } = this.#options;
    const log = openSync(logFile, 'a');
    try {
      return fork(entry, [socketPath, JSON.stringify(config())], {
        stdio: ['ignore', log, log, 'ipc'],
        detached: true,
        execArgv: [],
        env: { ...process.env, ...env, TREEWARD_RUN: runDirectory },
      });
    } finally {
      closeSync(log);
    }
  }

  #notStarted(how: string): TreewardError {
    const { logFile } = this.#options;
    return new TreewardError(
      'PROCESS_E_START',
      `the ${this.name} process ended (${how}) before it was ready${lastError(logFile)}`,
      { hints: [`its output is in ${logFile}`] },
    );
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

  /** Kills a child that is silent for too long; its death is then noticed like any other. */
  async #watch(child: ChildProcess, ended: AbortSignal): Promise<void> {
    if (!this.#options.watch) return;
    const { everyMs, questions } = this.#options.watch;
    const client = rpcClient(this.#options.socketPath);
    for (let silent = 0; silent < questions && !ended.aborted && !this.#stopping;) {
      const pause = sleep(everyMs, undefined, { ref: false, signal: ended }).catch(() => undefined);
      const answer = client.call('ping', null, { signal: AbortSignal.timeout(everyMs) });
      const heard = await answer.then(
        () => true,
        (error: { code?: unknown }) => error.code === 'RPC_E_METHOD',
      );
      silent = heard ? 0 : silent + 1;
      await pause;
    }
    client.close();
    if (!ended.aborted && !this.#stopping) child.kill('SIGKILL');
  }

  #onDeath(child: ChildProcess, how: string): void {
    if (this.#stopping || this.#child !== child) return;
    if (performance.now() - this.#upSince > PROVEN_MS) this.#row = 0;
    this.#away.since = performance.now();
    void this.#becoming(this.#revive(how));
  }

  /** Starts children until one answers. @throws TreewardError PROCESS_E_RESTARTS when it is given up */
  async #revive(how: string): Promise<void> {
    for (let last = how; !this.#stopping;) {
      this.#child = null;
      this.restarts++;
      if (++this.#row > (this.#options.maxRestarts ?? 5)) throw this.#giveUp(last);
      try {
        await this.#launch();
        this.#away = { ms: this.awayMs, since: null };
        return;
      } catch (error) {
        last = (error as Error).message;
      }
    }
  }

  #giveUp(last: string): TreewardError {
    const error = new TreewardError(
      'PROCESS_E_RESTARTS',
      `the ${this.name} process died ${this.#row} times (last: ${last})`,
      { hints: [`its output is in ${this.#options.logFile}`] },
    );
    this.#lost.abort(error);
    return error;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    // One that is only starting hears of it when it has started; one that never does is not waited for.
    await Promise.race([this.#ready.catch(() => undefined), sleep(3000, null, { ref: false })]);
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    if (child.connected) child.disconnect();
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
