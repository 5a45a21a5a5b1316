import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { randomStream, readJson, TreewardError, type Random } from '@treeward/base';
import type { ReplyPart } from '@treeward/messages';
import type { ChatTemplate, Engine, EngineFacts, Policy, Sampled, SampleRequest } from '../types.js';
import { checkRequest } from './check-request.js';

/** `<scripts>/<tag>.json`. A reply is a turn, or raw ids (to play what no template would render). */
export interface Script {
  replies: (ReplyPart[] | number[])[];
  /**
   * Said to every call that offers no tools (a title, say), which takes no place in `replies`: a harness that asks
   * beside its work gives no order to the two.
   */
  side?: ReplyPart[];
}

export interface Choice {
  parts: ReplyPart[];
  /** Log-probability of the whole choice; put on its first token, the rest follow with certainty. */
  logprob: number;
}

export interface ScriptedEngineOptions {
  template: ChatTemplate;
  /** Directory of scripts. A tag without a file says "Done." at once. */
  scripts?: string;
  /** Decides instead of a script. Must be a function of its arguments only. */
  choose?: (tag: string, callIndex: number, prompt: Int32Array, random: Random) => Choice;
  /** @default 4096 */
  contextLength?: number;
}

/**
 * Plays prepared replies: call k of a tag gets reply k, so a retry of an identical prompt gets the next one. After the
 * last reply: the text "Done.". k is the number that ends the call's seed (`<rollout>/<call>`, as the gateway makes them), so a
 * rollout that is run again, or whose engine was restarted under it, hears the same; without one, calls are counted per tag.
 */
export class ScriptedEngine implements Engine {
  readonly #template: ChatTemplate;
  readonly #options: ScriptedEngineOptions;
  readonly #contextLength: number;
  readonly #calls = new Map<string, number>();
  /** Numbers of the calls that were answered with `side`, by tag. */
  readonly #sides = new Map<string, Set<number>>();
  #policy: Policy = { id: 'scripted', version: 0 };

  /** @throws TreewardError ENGINE_E_CONFIG unless exactly one of `scripts` and `choose` is given */
  constructor(options: ScriptedEngineOptions) {
    if ((options.scripts === undefined) === (options.choose === undefined)) {
      throw new TreewardError('ENGINE_E_CONFIG', 'a scripted engine needs either `scripts` or `choose`');
    }
    this.#options = options;
    this.#template = options.template;
    this.#contextLength = options.contextLength ?? 4096;
  }

  async describe(): Promise<EngineFacts> {
    return {
      name: 'scripted',
      ids: true,
      logprobs: 'processed',
      contextLength: this.#contextLength,
      vocabSize: this.#template.vocabSize,
      policy: this.#policy,
    };
  }

  /** Weights change nothing here; the version does, so that a loop can be tested without a model. */
  async load(policy: Policy): Promise<void> {
    this.#policy = { ...policy };
  }

  /** @throws TreewardError ENGINE_E_SCRIPT when the tag's file is unusable, besides what `Engine` lists */
  async sample(
    policy: Policy | 'current',
    request: SampleRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<Sampled> {
    const answering = this.#policy;
    checkRequest(policy, answering, request, {
      contextLength: this.#contextLength,
      vocabSize: this.#template.vocabSize,
    });
    const { prompt, sampling, tag } = request;
    const base = { prompt, sampling, policy: answering };
    if (options.signal?.aborted) {
      return { ...base, tokens: new Int32Array(0), logprobs: new Float32Array(0), finish: 'abort' };
    }
    const callIndex = callOf(sampling.seed) ?? this.#calls.get(tag) ?? 0;
    this.#calls.set(tag, callIndex + 1);
    const { ids, logprob } = this.#reply(request, callIndex);

    const room = Math.min(sampling.maxTokens, this.#contextLength - prompt.length);
    const stop = ids.findIndex((id) => request.stopIds.includes(id));
    const whole = stop < 0 ? ids : ids.slice(0, stop + 1);
    const tokens = Int32Array.from(whole.slice(0, room));
    const logprobs = new Float32Array(tokens.length);
    if (logprobs.length > 0) logprobs[0] = logprob;
    // A script may lack a stop id (raw ids): it then ends as a cut reply would.
    const finish = stop >= 0 && whole.length <= room ? 'stop' : 'length';
    return { ...base, tokens, logprobs, finish };
  }

  async close(): Promise<void> {
    this.#calls.clear();
    this.#sides.clear();
  }

  #reply(request: SampleRequest, callIndex: number): { ids: number[]; logprob: number } {
    const { choose, scripts } = this.#options;
    if (choose) {
      const random = randomStream(request.sampling.seed);
      const { parts, logprob } = choose(request.tag, callIndex, request.prompt, random);
      return { ids: [...this.#template.reply(parts)], logprob };
    }
    const reply = this.#scripted(readScript(join(scripts!, `${request.tag}.json`)), request, callIndex);
    const raw = reply.every((item) => typeof item === 'number');
    return {
      ids: raw && reply.length > 0 ? reply : [...this.#template.reply(reply as ReplyPart[])],
      logprob: 0,
    };
  }

  #scripted(
    { replies, side }: Script,
    { tag, prompt }: SampleRequest,
    callIndex: number,
  ): Script['replies'][number] {
    const sides = this.#sides.get(tag) ?? new Set<number>();
    if (side && this.#offersNoTools(prompt)) {
      this.#sides.set(tag, sides.add(callIndex));
      return side;
    }
    const before = [...sides].filter((other) => other < callIndex).length;
    return replies[callIndex - before] ?? [{ type: 'text', text: 'Done.' }];
  }

  /** Whether a turn of the user follows right upon an empty manifest. */
  #offersNoTools(prompt: Int32Array): boolean {
    const start = [...this.#template.head([]), this.#template.message({ role: 'user', text: '' })[0]];
    return start.every((id, i) => prompt[i] === id);
  }
}

/** Read at every call: scripts are small, and a test may still be writing them when the engine starts. */
function readScript(path: string): Script {
  if (!existsSync(path)) return { replies: [] };
  const script = readJson<Script>(path);
  if (!Array.isArray(script.replies) || !script.replies.every(Array.isArray)) {
    throw new TreewardError('ENGINE_E_SCRIPT', `${path}: replies must be a list of turns`, {
      data: { file: path, field: 'replies' },
    });
  }
  return script;
}

function callOf(seed: string): number | null {
  const number = /\/(\d+)$/.exec(seed)?.[1];
  return number === undefined ? null : Number(number);
}
