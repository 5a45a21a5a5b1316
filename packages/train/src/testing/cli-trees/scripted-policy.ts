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
  contextLength: number;
  /** Calls by name that are answered when the last of them is here: so they overlap, whatever the machine does. */
  together: readonly string[];
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
    const { template, contextLength } = options;
    const scripted = new ScriptedEngine({
      template,
      contextLength,
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
        await this.#company(Number(request.sampling.seed.split('/').at(-1)));
        return scripted.sample(policy, request, sampling);
      },
    };
    this.faults = {
      onCall: (_rollout, call) => {
        const { answer } = this.seen[call]!;
        if ('status' in answer) return { status: answer.status };
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

  async #company(call: number): Promise<void> {
    const { together } = this.#options;
    if (!together.includes(this.seen[call]!.name)) return;
    const missing = (): boolean => together.some((name) => !this.seen.some((other) => other.name === name));
    for (let waited = 0; missing() && waited < 5000; waited += 20) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function nameOf({ requestClass }: Identity, { first, replies }: ScriptView): string {
  if (requestClass === 'side') return 'title';
  if (requestClass === 'compaction') return 'summary';
  return `${/\bTASK-(\w+)/.exec(first)?.[1] ?? 'main'}.${replies}`;
}
