export type {
  Endpoint,
  HarnessAdapter,
  HarnessCommand,
  HarnessTask,
  Installed,
  ToolNames,
  ToolVerb,
} from './types.js';
export { adapterByName, adapters, requireInstalled } from './registry.js';
export { toolCall } from './tool-call.js';
export { harnessCache } from './cache.js';
export { canonicaliser, type CanonicalRules } from './canonical/canonicaliser.js';
