import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { TreewardError } from '@treeward/base';
import type { CompactTemplate, Engine, EngineFacts, Policy, Sampled, SampleRequest } from '@treeward/policy';

/**
 * Answers as a function of prompt and seed, in ids that no encoder would choose: every text is spelled in bytes, never
 * merged. So a prompt that holds re-encoded text instead of sampled ids shows at once.
 */
export class FakeEngine implements Engine {
  readonly requests: SampleRequest[] = [];
  contextLength = 4096;
  delayMs = 0;
  /** Samplings that begin now end when it resolves, or when they are aborted. */
  gate: Promise<void> | null = null;
  /** While set, every call fails with this code. */
  down: string | null = null;
  /** Instead of the usual answer. */
  answer: ((request: SampleRequest) => Partial<Sampled>) | null = null;
  readonly #template: CompactTemplate;
  policy: Policy = { id: 'fake', version: 3 };

  constructor(template: CompactTemplate) {
    this.#template = template;
  }

  async describe(): Promise<EngineFacts> {
    if (this.down) throw new TreewardError(this.down, 'away');
    return {
      name: 'fake',
      ids: true,
      logprobs: 'processed',
      contextLength: this.contextLength,
      vocabSize: this.#template.vocabSize,
      policy: this.policy,
    };
  }

  /** Samplings that have begun end with the policy that they began with. */
  async load(policy: Policy): Promise<void> {
    this.policy = policy;
  }

  async sample(
    _policy: Policy | 'current',
    request: SampleRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<Sampled> {
    this.requests.push(request);
    const { policy } = this;
    const { signal } = options;
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error));
    });
    if (this.delayMs > 0) await sleep(this.delayMs);
    if (this.gate) await Promise.race([this.gate, aborted]);
    if (this.down) throw new TreewardError(this.down, 'away');
    const tokens = this.tokensFor(request);
    return {
      prompt: request.prompt,
      tokens,
      logprobs: Float32Array.from(tokens, (_, i) => -0.25 * (i + 1)),
      sampling: request.sampling,
      finish: 'stop',
      policy,
      ...this.answer?.(request),
    };
  }

  async close(): Promise<void> {
    this.down = 'ENGINE_E_CLOSED';
  }

  /** A read of a file whose name follows from prompt and seed. */
  tokensFor(request: Pick<SampleRequest, 'prompt' | 'sampling'>): Int32Array {
    const digest = createHash('sha256')
      .update(JSON.stringify([[...request.prompt], request.sampling.seed]))
      .digest('hex');
    return callIds(this.#template, 'Read', 'file_path', `the${digest.slice(0, 8)}.txt`);
  }
}

const bytes = (text: string): number[] => [...Buffer.from(text)].map((byte) => byte + 10);

const special = (template: CompactTemplate, name: string): number => {
  const id = Array.from({ length: 10 }, (_, i) => i).find((i) => template.decode(Int32Array.of(i)) === name);
  if (id === undefined) throw new Error(`no special ${name}`);
  return id;
};

export function callIds(
  template: CompactTemplate,
  tool: string,
  argument: string,
  value: string,
): Int32Array {
  const [call, arg, eq, end] = ['<call>', '<arg>', '<eq>', '<end>'].map((name) => special(template, name));
  return Int32Array.of(call!, ...bytes(tool), arg!, ...bytes(argument), eq!, ...bytes(value), end!);
}

export function textIds(template: CompactTemplate, text: string): Int32Array {
  return Int32Array.from([...bytes(text), special(template, '<eot>')]);
}
