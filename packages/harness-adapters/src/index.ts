export type {
  Endpoint,
  HarnessAdapter,
  HarnessCommand,
  HarnessTask,
  Installed,
  ToolNames,
  ToolVerb,
} from './types.js';
