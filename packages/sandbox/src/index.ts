export type {
  Execution,
  FileChange,
  Mount,
  RunOptions,
  RunResult,
  Sandbox,
  SandboxLimits,
  SandboxOptions,
  SandboxProvider,
  SandboxSession,
  SandboxTier,
} from './types.js';
export { BubblewrapProvider, type BubblewrapOptions } from './bubblewrap.js';
export type { SandboxCounters } from './counters.js';
export { DEFAULT_LIMITS } from './limits.js';
export { nodeMount } from './node-mount.js';
