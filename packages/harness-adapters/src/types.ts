import type { DialectName, Message, ToolSpec } from '@treeward/messages';
import type { Mount, RunOptions, SandboxLimits, SandboxProvider, SandboxSession } from '@treeward/sandbox';
import type { Identity, TranscriptAgent } from '@treeward/telemetry';
import type { ThinkingLevel } from './thinking.js';

/** The four things a demonstrator can do; each harness has its own names for them. */
export type ToolVerb = 'read' | 'write' | 'edit' | 'exec';

export interface ToolNames {
  /** Tool name as the harness offers it. */
  tool: string;
  /**
   * Argument names in the order path, content | path, old, new | command. A dotted one goes into a nested value:
   * `edits.0.oldText` is `{edits: [{oldText: …}]}` (see `toolCall`).
   */
  arguments: readonly string[];
  /**
   * Where a harness has no tool of its own for a verb: the shell command that does it, from the verb's values. It then
   * is the one argument.
   */
  shell?: (...values: string[]) => string;
}

/** Where a harness is installed on this machine. */
export interface Installed {
  version: string;
  /** Host directories to show read-only inside the sandbox. */
  mounts: readonly Mount[];
  /** Entry inside the sandbox, e.g. `/opt/harness/claude-code/…/claude`. */
  entry: string;
}

export interface Endpoint {
  /** e.g. `http://127.0.0.1:8080`, without a dialect path. */
  baseUrl: string;
  key: string;
  rolloutId: string;
}

export interface HarnessTask {
  prompt: string;
  /** Model calls after which the harness should stop by itself, where it can. */
  maxTurns: number;
  /** Started by the harness inside the sandbox, as extra tools. @default none */
  mcpServers?: readonly McpServer[];
  /**
   * `small`: what `HarnessAdapter.tools` names. `all`: what the harness offers by default, sub-agents among it.
   * @default 'small'
   */
  tools?: 'small' | 'all';
  /**
   * What the harness asks of the model in each request; whether the model thinks is up to what serves it.
   * @default 'off'
   */
  thinking?: ThinkingLevel;
  /** Goes on with the conversation that the same rollout's last run left in its HOME. @default false */
  resume?: boolean;
}

/** A stdio server; its files must be visible inside the sandbox. */
export interface McpServer {
  name: string;
  command: string;
  args: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/** Headers (lower-case, without secrets) and messages as the dialect parsed them. */
export interface IdentifiableRequest {
  headers: Readonly<Record<string, string>>;
  messages: readonly Message[];
  tools: readonly ToolSpec[];
}

export interface HarnessCommand {
  argv: readonly string[];
  run: Pick<RunOptions, 'env' | 'cwd' | 'stdin'>;
}

export interface HarnessAdapter {
  readonly name: string;
  /** The version this adapter was tested with. */
  readonly pin: string;
  readonly dialect: DialectName;
  readonly tools: Readonly<Record<ToolVerb, ToolNames>>;
  /** Asks, without tools and beside its first request, for a title: who plays prepared replies must answer that too. */
  readonly asksTitle?: true;
  /** Has a setting for how much the model thinks: `HarnessTask.thinking`. */
  readonly thinks?: true;
  readonly limits: Partial<SandboxLimits>;
  /** Bytes that it comes to at most in an ordinary rollout, well below its limit: so many are run at once. @default half the limit */
  readonly usualMemory?: number;
  /** Null when it is not installed. Reads the real version, never assumes the pin. */
  detect(): Promise<Installed | null>;
  /**
   * Once per machine, before the first rollout: makes what its later starts are cheaper with, in a sandbox without a
   * task. From then on `detect` shows it. A machine where it cannot be made does without. @default nothing to make
   */
  warm?(provider: SandboxProvider): Promise<void>;
  /**
   * Writes what the harness reads before its command line. `task` as `command` will get it.
   * @throws TreewardError HARNESS_E_UNSUPPORTED when the harness cannot do what the task asks for
   */
  prepare(sandbox: SandboxSession, endpoint: Endpoint, task?: HarnessTask): Promise<void>;
  command(
    sandbox: SandboxSession,
    installed: Installed,
    task: HarnessTask,
    endpoint: Endpoint,
  ): HarnessCommand;
  /** Files of the harness's own transcript, copied into the rollout's folder as a second witness. */
  readTranscript(
    sandbox: SandboxSession,
    task: HarnessTask,
    endpoint: Endpoint,
  ): Promise<Map<string, Uint8Array>>;
  /**
   * The conversation without this harness's volatile wrapping (envelopes, moved cache marks, reminder blocks), for
   * matching and for the template. Deterministic and idempotent. The trained tokens stay those sampled.
   */
  canonicalise(messages: readonly Message[]): Message[];
  /** Who sends a request, as its headers and markers say. Absent: this harness says nothing. */
  identify?(request: IdentifiableRequest): Identity;
  /** The files of `readTranscript` as agents and entries; lines that cannot be read are left out. */
  parseTranscript?(files: ReadonlyMap<string, Uint8Array>): TranscriptAgent[];
}
