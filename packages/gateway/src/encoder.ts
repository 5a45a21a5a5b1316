import { TreewardError, WORKER_ARGUMENTS } from '@treeward/base';
import type { Message, ToolSpec } from '@treeward/messages';
import type { ChatTemplate, TemplateSpec } from '@treeward/policy';
import { Piscina } from 'piscina';

/** Threads beside the gateway's own that encode. */
export interface EncodeThreads {
  /** What the threads make the gateway's template from. */
  template: TemplateSpec;
  /** @default 1 */
  threads?: number;
  /** Texts of fewer characters are encoded at once. @default 8000, and 100,000 until the first thread is up */
  inlineBelow?: number;
}

export type EncodeTask = { kind: 'head'; tools: readonly ToolSpec[] } | { kind: 'message'; message: Message };

/** What a thread starts with: what its template is made from, and which one that must be. */
export interface EncodeThread {
  spec: TemplateSpec;
  id: string;
  vocabSize: number;
}

/** Text to ids; at once where the text is small. */
export interface Encoder {
  head(tools: readonly ToolSpec[]): Int32Array | Promise<Int32Array>;
  message(message: Message): Int32Array | Promise<Int32Array>;
  close(): Promise<void>;
}

/** Everything on the calling thread. */
export function inlineEncoder(template: ChatTemplate): Encoder {
  return {
    head: (tools) => template.head(tools),
    message: (message) => template.message(message),
    close: async () => undefined,
  };
}

/**
 * Where a thread begins to pay. Measured (2 shared cores, byte-level BPE at about 6 characters per microsecond): the way
 * to a thread and back takes 0.1 to 0.2 ms, 8,000 characters take 1.3 ms. Below, the event loop is held for less than it
 * takes to notice, and the call itself is answered sooner.
 */
const INLINE_BELOW = 8000;
/** A thread takes 0.6 to 1.1 s to start; a first call's texts are not worth that wait, nor 16 ms of the event loop much. */
const INLINE_BELOW_AT_FIRST = 100_000;

/** Characters of text in a message: what its encoding costs. */
function sizeOf(message: Message): number {
  if (message.role !== 'assistant') return message.text.length;
  return JSON.stringify(message.parts).length;
}

/** Large texts on worker threads that hold the same template; small ones at once. */
export function threadedEncoder(template: ChatTemplate, options: EncodeThreads): Encoder {
  let inlineBelow = options.inlineBelow ?? INLINE_BELOW_AT_FIRST;
  const pool = new Piscina({
    filename: import.meta.resolve('@treeward/gateway/encode-worker'),
    execArgv: [...WORKER_ARGUMENTS],
    minThreads: 1,
    maxThreads: options.threads ?? 1,
    concurrentTasksPerWorker: 1,
    idleTimeout: Infinity,
    workerData: {
      spec: options.template,
      id: template.id,
      vocabSize: template.vocabSize,
    } satisfies EncodeThread,
  });
  // A thread that dies fails its task, which is told to whoever waits for it; the pool starts another.
  pool.on('error', () => undefined);
  // The thread is there as soon as it has done anything; what it fails at is told to the first text that needs it.
  const first: EncodeTask = { kind: 'message', message: { role: 'user', text: '' } };
  const ready = (): void => {
    inlineBelow = options.inlineBelow ?? INLINE_BELOW;
  };
  pool.run(first).then(ready, ready);
  const run = async (task: EncodeTask): Promise<Int32Array> => {
    try {
      return (await pool.run(task)) as Int32Array;
    } catch (cause) {
      throw new TreewardError('GATEWAY_E_ENCODE', `an encoding thread failed: ${(cause as Error).message}`, {
        cause,
        hints: ['encodeOn.template must make the template that the gateway was given'],
      });
    }
  };
  return {
    head: (tools) =>
      JSON.stringify(tools).length < inlineBelow ? template.head(tools) : run({ kind: 'head', tools }),
    message: (message) =>
      sizeOf(message) < inlineBelow ? template.message(message) : run({ kind: 'message', message }),
    close: () => pool.close({ force: true }),
  };
}
