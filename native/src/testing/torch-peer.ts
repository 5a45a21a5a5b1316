// PyTorch in a process of its own beside a bench: the same inputs, the same number of threads, timed by its own clock, in turns
// with ours. The Python side is scripts/torch_peer.py; cases are functions in modules beside it (`torch_peer_losses.py`).
import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

// This file runs from src, dist and out-tsc.
const native = dirname(createRequire(import.meta.url).resolve('@treeward/native/package.json'));

/** What is said once where no environment is found. */
export const TORCH_HINT =
  'torch rows skipped: no Python environment with PyTorch (make it: node tools/python-bench.mjs; or name one: TREEWARD_PYTHON_BENCH=/path/to/python)';

/** The environment's python: `TREEWARD_PYTHON_BENCH`, or what tools/python-bench.mjs made; undefined when there is none. */
export function findTorchPython(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = environment['TREEWARD_PYTHON_BENCH'];
  if (named) return named;
  try {
    const tool = join(native, '../tools/python-bench.mjs');
    return execFileSync(process.execPath, [tool, '--path'], {
      encoding: 'utf8',
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined; // exit code 3: not made yet
  }
}

/** An array for a case: shape as given, else flat. A Uint16Array is bfloat16 bits. */
export type PeerArray =
  | Float32Array
  | Int32Array
  | Uint16Array
  | { data: Float32Array | Int32Array | Uint16Array; shape: readonly number[] };

/** Milliseconds by the peer's clock, in the form in which tinybench takes a duration measured elsewhere. */
export interface PeerTiming {
  overriddenDuration: number;
  overriddenIterationCost: number;
}

export interface TorchCase {
  /** One run; `cold` first pushes the case's data out of the caches. */
  run(options?: { cold?: boolean }): Promise<PeerTiming>;
  /** What one run returns, as float32, for the parity check. */
  results(): Promise<Record<string, Float32Array>>;
  /** Bytes by which one run raises the peer's resident memory at its highest. */
  peakBytes(): Promise<number>;
  /** Frees its tensors. */
  release(): Promise<void>;
}

export interface TorchPeer {
  /** Of python, torch, numpy, and torchrl and transformers where they are there; for a row's `config`. */
  versions: Record<string, string>;
  threads: number;
  /** @param name `module.function`, e.g. `torch_peer_losses.policy_loss` */
  prepare(
    name: string,
    inputs: Record<string, PeerArray>,
    options?: Record<string, unknown>,
  ): Promise<TorchCase>;
  close(): Promise<void>;
}

export interface TorchPeerOptions {
  /** @default what findTorchPython() finds */
  python?: string | undefined;
  /** @default 1 */
  threads?: number;
  /** Further folders with modules of cases, absolute. */
  caseFolders?: readonly string[];
}

type Reply = Record<string, unknown> & { error?: string };

const DTYPES: Record<string, string> = {
  Float32Array: 'float32',
  Int32Array: 'int32',
  Uint16Array: 'bfloat16',
};

/** One request at a time to the child; a reply with `error`, or the child's end, rejects. */
class Channel {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void }[] = [];
  readonly #ended: Promise<void>;
  #stderr = '';
  #dead: Error | undefined;

  constructor(python: string, args: readonly string[], threads: number) {
    const limits = Object.fromEntries(
      ['OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS'].map((name) => [name, String(threads)]),
    );
    this.#child = spawn(python, args, { env: { ...process.env, ...limits, PYTHONUNBUFFERED: '1' } });
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-4000);
    });
    this.#child.stdin.on('error', () => undefined); // its end is told by `close`
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const reply = JSON.parse(line) as Reply;
      const next = this.#waiting.shift();
      if (reply.error === undefined) next?.resolve(reply);
      else next?.reject(new Error(`the torch peer: ${reply.error}\n${this.#stderr}`));
    });
    this.#ended = new Promise((resolve) => {
      const end = (reason: string): void => {
        this.#dead ??= new Error(`the torch peer ended (${reason})\n${this.#stderr}`);
        for (const { reject } of this.#waiting.splice(0)) reject(this.#dead);
        resolve();
      };
      this.#child.on('error', (error) => end(error.message));
      this.#child.on('close', (code, signal) => end(signal ?? `exit code ${code}`));
    });
  }

  next(): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#dead) reject(this.#dead);
      else this.#waiting.push({ resolve, reject });
    });
  }

  ask(request: Record<string, unknown>): Promise<Reply> {
    const reply = this.next();
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    return reply;
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }
}

function writeArrays(file: string, inputs: Record<string, PeerArray>): Record<string, unknown> {
  const specs: Record<string, unknown> = {};
  const to = openSync(file, 'w');
  let offset = 0;
  for (const [name, given] of Object.entries(inputs)) {
    const data = ArrayBuffer.isView(given) ? given : given.data;
    const shape = ArrayBuffer.isView(given) ? [given.length] : given.shape;
    specs[name] = { dtype: DTYPES[data.constructor.name], shape, offset, count: data.length };
    for (let done = 0; done < data.byteLength;)
      done += writeSync(to, data, done, data.byteLength - done, offset + done);
    offset += data.byteLength;
  }
  closeSync(to);
  return specs;
}

/**
 * Starts the peer.
 *
 * @throws Error with the end of the child's stderr when python, torch or a case fails
 */
export async function startTorchPeer({
  python = findTorchPython(),
  threads = 1,
  caseFolders = [],
}: TorchPeerOptions = {}): Promise<TorchPeer> {
  if (python === undefined) throw new Error(TORCH_HINT);
  const script = join(native, 'scripts/torch_peer.py');
  const folders = caseFolders.flatMap((folder) => ['--cases', folder]);
  const channel = new Channel(python, [script, '--threads', String(threads), ...folders], threads);
  const hello = await channel.next();
  const folder = mkdtempSync(join(tmpdir(), 'treeward-torch-peer-'));
  const file = join(folder, 'arrays');
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeFolder);
  let count = 0;
  return {
    versions: hello['versions'] as Record<string, string>,
    threads: hello['threads'] as number,
    async prepare(name, inputs, options = {}) {
      const id = String(count++);
      await channel.ask({ do: 'prepare', id, case: name, inputs: writeArrays(file, inputs), options, file });
      return {
        async run({ cold = false } = {}) {
          const ms = (await channel.ask({ do: 'run', id, cold }))['ms'] as number;
          return { overriddenDuration: ms, overriddenIterationCost: ms };
        },
        async results() {
          const { arrays } = await channel.ask({ do: 'results', id, file });
          const bytes = readFileSync(file);
          return Object.fromEntries(
            Object.entries(arrays as Record<string, { offset: number; count: number }>).map(
              ([key, { offset, count: length }]) => {
                const start = bytes.byteOffset + offset;
                return [key, new Float32Array(bytes.buffer.slice(start, start + 4 * length))];
              },
            ),
          );
        },
        peakBytes: async () => (await channel.ask({ do: 'memory', id }))['bytes'] as number,
        release: async () => void (await channel.ask({ do: 'release', id })),
      };
    },
    async close() {
      await channel.close();
      removeFolder();
      process.removeListener('exit', removeFolder);
    },
  };
}
