import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { encodeFrame, FrameReader, FrameType, PROTOCOL, zeroTerminated, type Frame } from './frames.js';
import type { Running } from './child.js';
import { killProcess, processStart } from './processes.js';

const SOCKET = 'spawner.sock';

interface Starting {
  onFrame(frame: Frame): void;
  lost(error: Error): void;
}

/**
 * Starts sandboxes through a small process (init/spawner.c): forking this one, with its hundred megabytes, costs twenty times
 * as much, twice per rollout. It lives as long as its provider, and never longer than this process.
 */
export class Spawner {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Starting>();
  readonly #ready: Promise<void>;
  #nextId = 1;
  #lost: Error | null = null;

  /** @param binary treeward-init; @param directory where its socket may lie */
  constructor(binary: string, directory: string) {
    rmSync(join(directory, SOCKET), { force: true });
    // Detached: Ctrl-C at the terminal asks us to finish, it must not hit the sandboxes.
    const child = spawn(binary, ['spawner', '--socket', SOCKET], {
      ...{ cwd: directory, env: {}, detached: true },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#process = child;
    let words = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => void (words += text));
    child.stdin.on('error', () => undefined); // it went first
    child.once('error', (error) => this.#lose(error));
    child.once('close', () => this.#lose(new Error(words.trim() || 'the spawner ended')));
    this.#ready = new Promise((resolve, reject) => {
      const onFrame = ({ type, payload }: Frame): void => {
        if (type === FrameType.ready && payload.readUInt32LE(0) === PROTOCOL) resolve();
        else reject(new Error('the spawner speaks another protocol: build it again'));
      };
      this.#pending.set(0, { onFrame, lost: reject });
    });
    const reader = new FrameReader();
    child.stdout.on('data', (piece: Buffer) => {
      try {
        for (const frame of reader.push(piece)) this.#pending.get(frame.id)?.onFrame(frame);
      } catch (error) {
        this.#lose(error as Error);
      }
    });
    // From then on nobody has to wait for it: what runs holds its own connection.
    const release = (): void => {
      child.unref();
      for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as Socket).unref();
    };
    this.#ready.then(release, release);
  }

  /** False once it has gone: with all that it started, and of no further use. */
  get alive(): boolean {
    return this.#lost === null;
  }

  #lose(error: Error): void {
    if (this.#lost) return;
    this.#lost = error;
    for (const { lost } of this.#pending.values()) lost(error);
    this.#pending.clear();
  }

  /**
   * Runs `treeward-init launch …`.
   * @param third file that descriptor 3 reads
   * @throws Error when it could not be started, the signal's reason when that came first
   */
  async start(argv: readonly string[], third: string, signal: AbortSignal): Promise<Running> {
    await unlessAborted(this.#ready, signal);
    // By its working directory: a path of any length is short that way.
    const io = connect(`/proc/${this.#process.pid}/cwd/${SOCKET}`);
    try {
      await once(io, 'connect', { signal });
      io.on('error', () => undefined); // the agent went while we wrote; its end says so
      const id = this.#nextId++;
      const { spawned, exited, failure } = this.#follow(id);
      io.write(encodeFrame(FrameType.spawn, id, Buffer.concat([third, ...argv].map(zeroTerminated))));
      const pid = await unlessAborted(spawned, signal);
      const start = processStart(pid);
      return {
        ...{ pid, input: io, output: io, exited, failure },
        kill: () => void (start !== null && killProcess(pid, start)),
      };
    } catch (error) {
      io.destroy(); // what may have been started sees the end of its input
      throw error;
    }
  }

  /** What the spawner says of one start. */
  #follow(id: number) {
    const spawned = deferred<number>();
    const exited = deferred<void>();
    const failure = deferred<never>();
    const finish = (why: Error): void => {
      this.#pending.delete(id);
      spawned.reject(why);
      failure.reject(why);
      exited.resolve();
    };
    for (const { promise } of [spawned, failure]) promise.catch(() => undefined);
    this.#pending.set(id, {
      onFrame: ({ type, payload }) => {
        if (type === FrameType.spawned) spawned.resolve(payload.readUInt32LE(0));
        else if (type === FrameType.ended) finish(endOf(payload));
      },
      lost: finish,
    });
    if (this.#lost) finish(this.#lost);
    return { spawned: spawned.promise, exited: exited.promise, failure: failure.promise };
  }

  /** Ends it and with it everything that it started. */
  async close(): Promise<void> {
    if (!this.alive || this.#process.exitCode !== null) return;
    const closed = once(this.#process, 'close');
    this.#process.ref();
    this.#process.stdin!.end();
    await closed;
  }
}

function endOf(payload: Buffer): Error {
  const [code, signal] = [payload.readInt32LE(0), payload.readInt32LE(4)];
  const words = payload.subarray(8).toString('utf8').trim();
  return new Error(`${words || 'no message'} (${code < 0 ? `signal ${signal}` : `exit ${code}`})`);
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((...settle) => ([resolve, reject] = settle));
  return { promise, resolve, reject };
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = deferred<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
