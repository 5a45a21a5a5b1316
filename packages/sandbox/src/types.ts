/** What a sandbox may hold of the machine. */
export interface SandboxLimits {
  /** Bytes of memory, page cache of its own files included. @default 1 GiB */
  memory: number;
  /** Processes and threads. @default 512 */
  pids: number;
  /** Cores. @default 1 */
  cpus: number;
  /** Bytes of scratch disk (a tmpfs; smaller than `memory`). @default 256 MiB */
  disk: number;
}

export type SandboxTier = 'full' | 'user' | 'none';

/** A host directory or file that is visible read-only inside, outside the workspace. */
export interface Mount {
  host: string;
  inside: string;
}

/** A workspace as it stood at one moment, from which any number of sandboxes of the same provider can start. */
export interface Snapshot {
  readonly id: string;
  /** Of all its files. */
  readonly bytes: number;
  /** It goes when the last sandbox that stands on it has ended. Idempotent. */
  release(): void;
}

/** A host directory in place of a path of the workspace (relative, plain). */
export interface Cover {
  host: string;
  path: string;
}

export type SandboxUser = 'task' | 'grader';

export interface SandboxOptions {
  id: string;
  /** A directory, or a snapshot of this provider's: becomes the read-only lower layer. Absent: an empty workspace. */
  workspaceFrom?: string | Snapshot;
  limits?: Partial<SandboxLimits>;
  /** `none`, or the directory that holds the model's unix socket `model.sock`: the only way out. */
  network: { kind: 'none' } | { kind: 'model-socket'; directory: string };
  mounts?: readonly Mount[];
  /**
   * Host directories shown read-only at a path of the workspace, in place of whatever it holds there: `reward` of a
   * grader. They are copied first, so that it does not matter whose they are.
   */
  covers?: readonly Cover[];
  /** Whose uid: a grader is another user than the task was. @default 'task' */
  user?: SandboxUser;
  /** Watch every command that starts inside (strace around the sandbox; 0.3 ms per command). @default false */
  trace?: boolean;
  signal?: AbortSignal;
}

export interface RunOptions {
  env?: Readonly<Record<string, string>>;
  /** @default the workspace */
  cwd?: string;
  stdin?: string;
  /** Milliseconds; the whole process group is killed. @default none */
  timeout?: number;
  /** Bytes kept of each stream; the rest is counted, not stored. @default 1 MiB */
  maxOutput?: number;
  signal?: AbortSignal;
}

export interface RunResult {
  /** Exit code, or null when killed by a signal. */
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  timedOut: boolean;
  truncated: boolean;
  /** CPU seconds, user + system, of the command and its waited-for children. */
  cpuSeconds: number;
  wallMs: number;
}

export interface FileChange {
  path: string;
  kind: 'create' | 'modify' | 'delete' | 'opaque' | 'symlink' | 'dir' | 'other';
  mode: number;
  size: number;
  /** Of regular files up to 64 MiB. */
  sha256?: string;
  /** Where a symlink leads. */
  target?: string;
}

/** A command that started inside; a process that runs another program in its place has one for each. */
export interface Execution {
  /** As the tracer outside saw it. */
  pid: number;
  /** 0 where its start was not seen. */
  parentPid: number;
  /** Each argument cut at 2,000 bytes. */
  argv: string[];
  /** Epoch milliseconds; `end` null while it runs. */
  start: number;
  end: number | null;
  code: number | null;
  signal: string | null;
}

/** A narrowed handle for graders and tools: no limits, network or destroy. */
export interface SandboxSession {
  readonly id: string;
  /** Absolute path of the workspace inside. */
  readonly workspace: string;
  /** Absolute path of the private HOME inside. */
  readonly home: string;
  write(path: string, data: string | Uint8Array, options?: { mode?: number }): Promise<void>;
  read(path: string): Promise<Uint8Array>;
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>;
}

export interface Sandbox extends SandboxSession {
  readonly tier: SandboxTier;
  /** Id (hash) of the image it was made from; null where there is none. */
  readonly image: string | null;
  /** Base URL of the model endpoint as seen inside (a loopback port that leads to the model socket), if it has one. */
  readonly modelUrl: string | null;
  session(): SandboxSession;
  /** What the workspace holds beyond its lower layer. */
  changes(): Promise<FileChange[]>;
  /** Commands so far, in order of start; empty without `trace`. */
  executions(): Promise<Execution[]>;
  /** Copies the whole workspace (lower layer and changes; symlinks as links) to an empty host directory. */
  exportWorkspace(directory: string): Promise<void>;
  /**
   * Keeps the workspace as it is now (files and links; no processes), so that other sandboxes can go on from here. What
   * they report as changes counts from the snapshot on.
   */
  snapshot(): Promise<Snapshot>;
  /** True once the memory limit has killed something inside. */
  outOfMemory(): Promise<boolean>;
  /** Idempotent; also after a failed open. Leaves no process, mount, cgroup or directory. */
  destroy(): Promise<void>;
}

export interface SandboxProvider {
  readonly name: string;
  /** Which tier this machine offers and why; never throws. */
  probe(): Promise<{ tier: SandboxTier; reasons: string[] }>;
  /** @throws TreewardError SANDBOX_E_TIER, SANDBOX_E_CREATE (an infrastructure failure: retried or left out, never a reward of 0) */
  open(options: SandboxOptions): Promise<Sandbox>;
  /** Removes what dead owners left behind. Safe to run twice and beside live runs. */
  sweep(): Promise<{ swept: number; live: number }>;
}
