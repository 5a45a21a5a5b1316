export type {
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
