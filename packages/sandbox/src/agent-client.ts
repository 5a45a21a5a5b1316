import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { getSystemErrorName } from 'node:util';
import { TreewardError } from '@treeward/base';
import {
  decodeExit,
  encodeExec,
  encodeFrame,
  FrameReader,
  FrameType,
  MAX_FRAME,
  PROTOCOL,
  zeroTerminated,
  type Frame,
} from './frames.js';
import type { RunOptions, RunResult } from './types.js';

const CHUNK = 256 * 1024;
const MAX_STDIN = 16 * 1024 * 1024;
/** The agent ends commands by itself; this much later it must be broken or starved. */
const TIMEOUT_GRACE_MS = 15_000;

interface Pending {
  onFrame(frame: Frame): void;
  fail(error: Error): void;
}

const signalName = (number: number): string =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `SIG${number}`;

const errnoName = (errno: number): string => {
  try {
    return getSystemErrorName(-errno);
  } catch {
    return `errno ${errno}`;
  }
};

/** Speaks frames with one agent; many commands and files at once. */
export class AgentClient {
  readonly #output: Writable;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #lost: Error | null = null;
  readonly ready: Promise<{ port: number }>;

  constructor(output: Writable, input: Readable) {
    this.#output = output;
    output.on('error', (error) => this.#lose(error)); // EPIPE: the agent went while we wrote
    this.ready = new Promise((resolve, reject) => {
      this.#pending.set(0, {
        onFrame: ({ type, payload }) => {
          if (type !== FrameType.ready) return;
          this.#pending.delete(0);
          const protocol = payload.readUInt32LE(0);
          if (protocol === PROTOCOL) resolve({ port: payload.readUInt32LE(4) });
          else reject(new Error(`agent speaks protocol ${protocol}, this is ${PROTOCOL}: build it again`));
        },
        fail: reject,
      });
    });
    this.ready.catch(() => undefined);
    const reader = new FrameReader();
    input.on('data', (piece: Buffer) => {
      try {
        for (const frame of reader.push(piece)) this.#pending.get(frame.id)?.onFrame(frame);
      } catch (error) {
        this.#lose(error as Error);
      }
    });
    input.on('close', () => this.#lose(new Error('the agent is gone')));
  }

  get lost(): boolean {
    return this.#lost !== null;
  }

  /** Ends the agent, and with it everything inside. */
  close(): void {
    this.#output.end();
  }

  #lose(cause: Error): void {
    if (this.#lost) return;
    this.#lost = new TreewardError('SANDBOX_E_LOST', `the sandbox ended: ${cause.message}`, { cause });
    for (const pending of this.#pending.values()) pending.fail(this.#lost);
    this.#pending.clear();
  }

  #open<T>(
    start: (
      id: number,
      settle: { resolve(value: T): void; reject(error: Error): void },
    ) => Pending['onFrame'],
  ) {
    return new Promise<T>((resolve, reject) => {
      if (this.#lost) return reject(this.#lost);
      const id = this.#nextId++;
      const end = (): void => void this.#pending.delete(id);
      const settle = {
        resolve: (value: T) => (end(), resolve(value)),
        reject: (error: Error) => (end(), reject(error)),
      };
      // Registered before anything is sent: the answer may come within the same turn.
      let onFrame: Pending['onFrame'] = () => undefined;
      this.#pending.set(id, { onFrame: (frame) => onFrame(frame), fail: settle.reject });
      onFrame = start(id, settle);
    });
  }

  #send(type: number, id: number, payload?: Uint8Array): void {
    if (!this.#lost) this.#output.write(encodeFrame(type, id, payload));
  }

  #sendChunks(type: number, id: number, data: Uint8Array): void {
    for (let at = 0; at < data.length; at += CHUNK) this.#send(type, id, data.subarray(at, at + CHUNK));
  }

  async exec(
    argv: readonly string[],
    env: Readonly<Record<string, string>>,
    cwd: string,
    options: RunOptions,
  ): Promise<RunResult> {
    options.signal?.throwIfAborted();
    const stdin = options.stdin === undefined ? null : Buffer.from(options.stdin);
    const bad = (why: string): TreewardError =>
      new TreewardError('SANDBOX_E_OPTIONS', `run ${argv[0]}: ${why}`);
    if (argv.length === 0) throw bad('argv is empty');
    if (stdin && stdin.length > MAX_STDIN) throw bad(`stdin has ${stdin.length} bytes; most: ${MAX_STDIN}`);
    if ([cwd, ...argv, ...Object.entries(env).flat()].some((text) => text.includes('\0'))) {
      throw bad('argv, env and cwd cannot hold a zero byte');
    }
    const maxOutput = options.maxOutput ?? 1024 * 1024;
    const timeout = options.timeout ?? 0;
    const request = encodeExec({ argv, env, cwd, timeout, hasStdin: stdin !== null, maxOutput });
    if (request.length > MAX_FRAME)
      throw bad(`argv and env take ${request.length} bytes; most: ${MAX_FRAME}`);

    let timer: NodeJS.Timeout | undefined;
    let onAbort = (): void => undefined;
    try {
      return await this.#open<RunResult>((id, { resolve, reject }) => {
        const streams: { out: Buffer[]; err: Buffer[] } = { out: [], err: [] };
        this.#send(FrameType.exec, id, request);
        if (stdin) {
          this.#sendChunks(FrameType.stdin, id, stdin);
          this.#send(FrameType.stdinEnd, id);
        }
        onAbort = () => this.#send(FrameType.cancel, id);
        options.signal?.addEventListener('abort', onAbort);
        if (timeout) {
          timer = setTimeout(
            () => this.#lose(new Error(`no answer ${TIMEOUT_GRACE_MS} ms after a time-out`)),
            timeout + TIMEOUT_GRACE_MS,
          );
          timer.unref();
        }
        return ({ type, payload }) => {
          if (type === FrameType.stdout) streams.out.push(payload);
          else if (type === FrameType.stderr) streams.err.push(payload);
          else if (type === FrameType.error) reject(agentError(`run ${argv[0]}`, payload));
          else if (type === FrameType.exit) {
            if (options.signal?.aborted) return reject(options.signal.reason as Error);
            const exit = decodeExit(payload);
            if (exit.failure) {
              const what = exit.failure.what === 'cwd' ? `cannot enter ${cwd}` : `cannot run ${argv[0]}`;
              streams.err.push(Buffer.from(`treeward: ${what}: ${errnoName(exit.failure.errno)}\n`));
            }
            resolve({
              code: exit.code < 0 ? null : exit.code,
              signal: exit.code < 0 ? signalName(exit.signal) : null,
              stdout: Buffer.concat(streams.out).toString('utf8'),
              stderr: Buffer.concat(streams.err).toString('utf8'),
              timedOut: exit.timedOut,
              truncated: exit.dropped > 0,
              cpuSeconds: exit.cpuSeconds,
              wallMs: exit.wallMs,
            });
          }
        };
      });
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', onAbort);
    }
  }

  write(path: string, data: Uint8Array, mode: number): Promise<void> {
    return this.#open<void>((id, { resolve, reject }) => {
      const head = Buffer.alloc(4);
      head.writeUInt32LE(mode);
      this.#send(FrameType.writeOpen, id, Buffer.concat([head, zeroTerminated(path)]));
      this.#sendChunks(FrameType.writeData, id, data);
      this.#send(FrameType.writeEnd, id);
      return ({ type, payload }) => {
        if (type === FrameType.done) resolve();
        else if (type === FrameType.error) reject(agentError(`write ${path}`, payload));
      };
    });
  }

  read(path: string, maxBytes: number): Promise<Buffer> {
    return this.#open<Buffer>((id, { resolve, reject }) => {
      const head = Buffer.alloc(8);
      head.writeBigUInt64LE(BigInt(maxBytes));
      this.#send(FrameType.read, id, Buffer.concat([head, zeroTerminated(path)]));
      const pieces: Buffer[] = [];
      return ({ type, payload }) => {
        if (type === FrameType.data) pieces.push(payload);
        else if (type === FrameType.done) resolve(Buffer.concat(pieces));
        else if (type === FrameType.error) reject(agentError(`read ${path}`, payload));
      };
    });
  }
}

function agentError(what: string, payload: Buffer): TreewardError {
  const errno = errnoName(payload.readInt32LE(0));
  return new TreewardError('SANDBOX_E_FILE', `cannot ${what} in the sandbox: ${errno}`, { data: { errno } });
}
