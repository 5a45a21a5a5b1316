export type {
  Endpoint,
  HarnessAdapter,
  HarnessCommand,
  HarnessTask,
  IdentifiableRequest,
  Installed,
  McpServer,
  ToolNames,
  ToolVerb,
} from './types.js';
export { adapterByName, adapters, registerAdapter, requireInstalled } from './registry.js';
export { THINKING_LEVELS, type ThinkingLevel } from './thinking.js';
export { toolCall } from './tool-call.js';
export { harnessCache } from './cache.js';
export { canonicaliser, type CanonicalRules } from './canonical/canonicaliser.js';
export { probeHarness, type ProbeReport } from './probe/probe.js';
export type { ProbeFacts } from './probe/facts.js';
