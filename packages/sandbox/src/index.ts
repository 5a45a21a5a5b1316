export type {
  Cover,
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
  SandboxUser,
  Snapshot,
} from './types.js';
export { BubblewrapProvider, type BubblewrapOptions } from './bubblewrap.js';
export type { SandboxCounters } from './counters.js';
export { DEFAULT_LIMITS } from './limits.js';
export { nodeMount } from './node-mount.js';
export { DockerProvider, type DockerOptions } from './docker/docker-provider.js';
export { buildImage, type BuildImageOptions } from './docker/build-image.js';
export { daemonUnavailable, startDaemon, type Daemon } from './docker/private-daemon.js';
export { leftoverFolders } from './leftovers.js';
