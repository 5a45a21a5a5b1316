import { TreewardError } from '@treeward/base';
import type { Canonicaliser, FaultPlan, RequestFacts } from '@treeward/gateway';
import type { HarnessAdapter } from '@treeward/harness-adapters';
import {
  say,
  scriptView,
  type Script,
  type Scripted,
  type ScriptView,
} from '@treeward/harness-adapters/testing';
import {
  ScriptedEngine,
  type ChatTemplate,
  type Engine,
  type Policy,
  type SampleRequest,
} from '@treeward/policy';
import type { Identity } from '@treeward/telemetry';

const CONTEXT = 200_000;
/** A scripted fault with this status is the engine's: the prompt is longer than its context. */
export const TOO_LONG = 400;
/** Milliseconds; what does not come by then makes another tree than expected. */
const PATIENCE = 10_000;

/** A request as it came to the gateway; its place in the list is its call number. */
export interface SeenRequest {
  /** `<agent>.<replies before>`, `summary` or `title`; a further one of the same name gets a dash. */
  name: string;
  identity: Identity;
  answer: Scripted;
}

export interface ScriptedPolicyOptions {
  adapter: Pick<HarnessAdapter, 'canonicalise' | 'identify'>;
  script: Script;
  template: ChatTemplate;
  /** A call, by name, is answered once the named others have arrived: what overlaps and what comes first is no accident. */
  waitsFor: Readonly<Record<string, readonly string[]>>;
}

/** A script that plays behind the real gateway: replies through an engine, faults through the gateway's fault plan. */
export class ScriptedPolicy {
  readonly seen: SeenRequest[] = [];
  readonly engine: Engine;
  readonly faults: FaultPlan;
  readonly #options: ScriptedPolicyOptions;
  #work = 0;

  constructor(options: ScriptedPolicyOptions) {
    this.#options = options;
    const { template } = options;
    const scripted = new ScriptedEngine({
      template,
      contextLength: CONTEXT,
      choose: (_tag, call) => {
        const { answer } = this.seen[call]!;
        // A stream that breaks off had a reply.
        return { parts: 'drop' in answer || 'status' in answer ? say('Lost.') : [...answer], logprob: -1 };
      },
    });
    this.engine = {
      describe: () => scripted.describe(),
      load: (policy) => scripted.load(policy),
      close: () => scripted.close(),
      sample: async (policy: Policy | 'current', request: SampleRequest, sampling) => {
        const seen = this.seen[Number(request.sampling.seed.split('/').at(-1))]!;
        if ('status' in seen.answer)
          throw new TreewardError('ENGINE_E_CONTEXT', 'longer than the script allows');
        await this.#company(seen.name);
        return scripted.sample(policy, request, sampling);
      },
    };
    this.faults = {
      onCall: (_rollout, call) => {
        const { answer } = this.seen[call]!;
        if ('status' in answer) return answer.status === TOO_LONG ? null : { status: answer.status };
        return 'drop' in answer ? 'drop-mid' : null;
      },
    };
  }

  readonly canonicalise = (): Canonicaliser => (messages) => this.#options.adapter.canonicalise(messages);

  /** The gateway asks this once per call, in the order of their numbers. */
  readonly identify =
    () =>
    (request: RequestFacts): Identity => {
      const { adapter, script } = this.#options;
      const identity = adapter.identify?.(request) ?? {};
      const side = identity.requestClass === 'side';
      const view = scriptView(adapter.canonicalise(request.messages), side ? -1 : this.#work++);
      const name = this.#unique(nameOf(identity, view));
      this.seen.push({ name, identity, answer: side ? say('A title') : script(view) });
      return identity;
    };

  #unique(name: string): string {
    return this.seen.some((other) => other.name === name) ? this.#unique(`${name}'`) : name;
  }

  async #company(name: string): Promise<void> {
    const others = this.#options.waitsFor[name] ?? [];
    const missing = (): boolean => others.some((other) => !this.seen.some((seen) => seen.name === other));
    for (let waited = 0; missing() && waited < PATIENCE; waited += 20) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function nameOf({ requestClass }: Identity, { first, replies }: ScriptView): string {
  if (requestClass === 'side') return 'title';
  if (requestClass === 'compaction') return 'summary';
  return `${/\bTASK-(\w+)/.exec(first)?.[1] ?? 'main'}.${replies}`;
}
