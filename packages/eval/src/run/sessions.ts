import { adapterByName, requireInstalled, type Endpoint, type HarnessTask } from '@treeward/harness-adapters';
import type { RolloutDeps } from '@treeward/rollout';
import type { RunOptions, RunResult, Sandbox, SandboxOptions, SandboxProvider } from '@treeward/sandbox';
import type { TaskSession } from '../types.js';

export interface SessionPlan {
  harness: string;
  sessions: readonly TaskSession[];
  maxTurns: number;
}

type Gateway = RolloutDeps['gateway'];

/**
 * Lets `runRollout` play tasks of several sessions: to it they are one run of the harness. Each session is a run of the CLI in the
 * same sandbox; files and HOME stay; `newSession` begins another conversation, else the one before goes on. All share the one
 * time limit. Rollouts without a plan pass through untouched.
 */
export class Sessions {
  readonly #plans = new Map<string, SessionPlan>();
  readonly #keys = new Map<string, string>();

  plan(rolloutId: string, plan: SessionPlan): void {
    if (plan.sessions.length > 1) this.#plans.set(rolloutId, plan);
  }

  wrap(deps: RolloutDeps): RolloutDeps {
    return { ...deps, gateway: this.#gateway(deps.gateway), sandboxes: this.#sandboxes(deps.sandboxes) };
  }

  #gateway(gateway: Gateway): Gateway {
    const open: Gateway['open'] = async (options) => {
      const opened = await gateway.open(options);
      if (this.#plans.has(options.rolloutId)) this.#keys.set(options.rolloutId, opened.key);
      return opened;
    };
    return delegate(gateway, { open });
  }

  #sandboxes(provider: SandboxProvider): SandboxProvider {
    const open = async (options: SandboxOptions): Promise<Sandbox> => {
      const sandbox = await provider.open(options);
      const plan = this.#plans.get(options.id);
      if (!plan) return sandbox;
      let first = true;
      const run = async (argv: readonly string[], runOptions: RunOptions = {}): Promise<RunResult> => {
        // The harness's own run is the one with a time limit; anything else is a look at the workspace.
        if (!first || runOptions.timeout === undefined) return sandbox.run(argv, runOptions);
        first = false;
        return playSessions(sandbox, plan, this.#endpoint(options.id, sandbox), argv, runOptions);
      };
      return delegate(sandbox, { run });
    };
    return delegate(provider, { open });
  }

  #endpoint(rolloutId: string, sandbox: Sandbox): Endpoint {
    return { baseUrl: sandbox.modelUrl ?? '', key: this.#keys.get(rolloutId) ?? '', rolloutId };
  }
}

/** `target` with some methods replaced; the rest are called on itself. */
function delegate<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(inner, name) {
      if (Object.hasOwn(methods, name)) return (methods as Record<PropertyKey, unknown>)[name];
      const value: unknown = Reflect.get(inner, name, inner);
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(inner) : value;
    },
  });
}

async function playSessions(
  sandbox: Sandbox,
  { harness, sessions, maxTurns }: SessionPlan,
  endpoint: Endpoint,
  argv: readonly string[],
  options: RunOptions,
): Promise<RunResult> {
  const started = Date.now();
  const adapter = adapterByName(harness);
  const installed = await requireInstalled(adapter);
  let total = await sandbox.run(argv, options);
  // Harnesses name a conversation after the rollout: another conversation needs another name.
  let conversation = endpoint;
  for (const [index, session] of sessions.entries()) {
    const left = (options.timeout ?? Infinity) - (Date.now() - started);
    if (index === 0) continue;
    if (total.timedOut || options.signal?.aborted) break;
    if (left <= 0) return { ...total, timedOut: true };
    if (session.newSession) conversation = { ...endpoint, rolloutId: `${endpoint.rolloutId}-${index + 1}` };
    const task: HarnessTask = { prompt: session.prompt, maxTurns, resume: !session.newSession };
    await adapter.prepare(sandbox.session(), conversation, task);
    const command = adapter.command(sandbox.session(), installed, task, conversation);
    const run = await sandbox.run(command.argv, { ...options, ...command.run, timeout: left });
    total = {
      ...run,
      stdout: total.stdout + run.stdout,
      stderr: total.stderr + run.stderr,
      truncated: total.truncated || run.truncated,
      cpuSeconds: total.cpuSeconds + run.cpuSeconds,
      wallMs: total.wallMs + run.wallMs,
    };
  }
  return total;
}
