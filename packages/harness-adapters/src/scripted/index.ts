export { runScripted, type ScriptedOutcome, type ScriptedRun } from './run.js';
export {
  call,
  inOrder,
  say,
  scriptView,
  type Fault,
  type Script,
  type Scripted,
  type ScriptView,
} from './script.js';
export { scriptedServer, type ScriptedCall, type ScriptedServer } from './server.js';
export {
  claudeCompaction,
  claudeSubagents,
  codexSubagent,
  faults,
  mcp,
  openclawSubagents,
  opencodeSubagents,
  resumed,
  type Scenario,
} from './scenarios.js';
