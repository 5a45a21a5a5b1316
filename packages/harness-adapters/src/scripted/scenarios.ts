import { fileURLToPath } from 'node:url';
import { nodeMount } from '@treeward/sandbox';
import type { Identity } from '@treeward/telemetry';
import type { HarnessTask, McpServer } from '../types.js';
import type { ScriptedRun } from './run.js';
import { call, inOrder, say, type Scripted, type ScriptView } from './script.js';

/**
 * Runs of real CLIs whose true structure is known. The script sees only what `ScriptView` has, so that the same run can
 * be played by a plain server, by an engine behind the real gateway, or from decoded tokens.
 */
export interface Scenario extends ScriptedRun {
  name: string;
  harness: string;
  truth: {
    /** Model calls by role, retried ones included. */
    calls: Partial<Record<NonNullable<Identity['requestClass']>, number>>;
    /** Edges beside `continue`, by type. */
    edges: Partial<Record<'retry' | 'compaction' | 'spawn' | 'return' | 'rollback' | 'parallel', number>>;
    /** Conversations of sub-agents. */
    agents: number;
  };
}

const task = (prompt: string, more: Partial<HarnessTask> = {}): HarnessTask => ({
  prompt,
  maxTurns: 20,
  ...more,
});
const child = (view: ScriptView): string | undefined => /\bTASK-(\w+)/.exec(view.first)?.[1];

/** Two children side by side; the first one starts a third. */
export const claudeSubagents = (): Scenario => {
  const agent = (name: string): ReturnType<typeof call> =>
    call('Agent', {
      description: `do ${name}`,
      prompt: `TASK-${name}: do it.`,
      subagent_type: 'general-purpose',
    });
  return {
    name: 'claude-code: two parallel sub-agents, one nested',
    harness: 'claude-code',
    tasks: [task('Have two agents do it.', { tools: 'all' })],
    script: (view) => {
      const name = child(view);
      if (name === undefined)
        return view.replies === 0 ? [...say('Two.'), agent('A'), agent('B')] : say('Done.');
      if (view.replies > 0) return say(`Result of ${name}.`);
      return [name === 'A' ? agent('N') : call('Bash', { command: `echo ${name}` })];
    },
    truth: { calls: { main: 2, subagent: 6 }, edges: { spawn: 3, return: 3 }, agents: 3 },
  };
};

/** Two children; each result comes back as a turn of its own. */
export const openclawSubagents = (): Scenario => ({
  name: 'openclaw-gateway: two sub-agents',
  harness: 'openclaw-gateway',
  tasks: [task('Have two agents do it.', { tools: 'all' })],
  script: (view) => {
    const name = child(view);
    if (name !== undefined) {
      return view.replies > 0 ? say(`Result of ${name}.`) : [call('exec', { command: `echo ${name}` })];
    }
    if (view.replies > 0) return say(view.replies === 1 ? 'Waiting.' : 'Noted.');
    const spawn = (which: string): ReturnType<typeof call> =>
      call('sessions_spawn', { task: `TASK-${which}: do it.` });
    return [...say('Two.'), spawn('A'), spawn('B')];
  },
  truth: { calls: { main: 4, subagent: 4 }, edges: { spawn: 2, return: 2 }, agents: 2 },
});

/** Two children side by side, each a session of its own; opencode asks for a title beside. */
export const opencodeSubagents = (): Scenario => ({
  name: 'opencode: two parallel sub-agents',
  harness: 'opencode',
  tasks: [task('Have two agents do it.', { tools: 'all' })],
  script: (view) => {
    const name = child(view);
    if (name !== undefined) {
      return view.replies > 0 ? say(`Result of ${name}.`) : [call('bash', { command: `echo ${name}` })];
    }
    if (view.replies > 0) return say('Done.');
    const agent = (which: string): ReturnType<typeof call> =>
      call('task', { description: `do ${which}`, prompt: `TASK-${which}: do it.`, subagent_type: 'general' });
    return [...say('Two.'), agent('A'), agent('B')];
  },
  truth: { calls: { main: 2, subagent: 4 }, edges: { spawn: 2, return: 2 }, agents: 2 },
});

/** One child, waited for by a call of its own. */
export const codexSubagent = (): Scenario => ({
  name: 'codex: a sub-agent',
  harness: 'codex',
  tasks: [task('Have an agent do it.', { tools: 'all' })],
  script: (view) => {
    const name = child(view);
    if (name !== undefined) return say(`Result of ${name}.`);
    if (view.replies === 0) return [call('multi_agent_v1__spawn_agent', { message: 'TASK-A: do it.' })];
    const id = /"agent_id"\s*:\s*"([\w-]+)"/.exec(view.last)?.[1];
    return id === undefined ? say('Done.') : [call('multi_agent_v1__wait_agent', { targets: [id] })];
  },
  truth: { calls: { main: 3, subagent: 1 }, edges: { spawn: 1, return: 1 }, agents: 1 },
});

/** A conversation, its compaction by hand, and its continuation from the summary. */
export const claudeCompaction = (): Scenario => ({
  name: 'claude-code: forced compaction, then resumed',
  harness: 'claude-code',
  files: { 'notes.txt': 'alpha\nbeta\n' },
  tasks: [
    task('Read notes.txt.'),
    task('/compact', { resume: true }),
    task('What did it say?', { resume: true }),
  ],
  script: (view) => {
    if (/<summary>/.test(view.last)) return say('<summary>notes.txt says alpha, beta.</summary>');
    if (view.replies === 0 && view.first.startsWith('Read'))
      return [call('Read', { file_path: 'notes.txt' })];
    return say('alpha, beta');
  },
  truth: { calls: { main: 3, compaction: 1 }, edges: { compaction: 1 }, agents: 0 },
});

/** A second run goes on with the first one's conversation. */
export const resumed = (harness: string): Scenario => ({
  name: `${harness}: resumed`,
  harness,
  tasks: [task('Say one.'), task('Say two.', { resume: true })],
  script: (view) => say(view.last.includes('two') ? 'two' : 'one'),
  truth: { calls: { main: 2 }, edges: {}, agents: 0 },
});

/** A fault before each turn: 500, 429, and a stream that breaks off unless `drops` is false. */
export const faults = (
  harness: string,
  exec: { tool: string; argument: string },
  { drops = true } = {},
): Scenario => {
  const turns: Scripted[] = [
    { status: 500 },
    [call(exec.tool, { [exec.argument]: 'echo one' })],
    { status: 429, retryAfter: 1 },
    [call(exec.tool, { [exec.argument]: 'echo two' })],
    ...(drops ? [{ drop: true } as const] : []),
    say('Done.'),
  ];
  return {
    name: `${harness}: 500, 429 with retry-after${drops ? ', a dropped stream' : ''}`,
    harness,
    tasks: [task('Say two words.')],
    script: inOrder(turns),
    truth: { calls: { main: turns.length }, edges: { retry: drops ? 3 : 2 }, agents: 0 },
  };
};

const SERVER = '/opt/mcp/mcp-secret.mjs';

/** An MCP server that runs inside the sandbox offers the tool `secret`, which is called. */
export const mcp = (harness: string, tool: string): Scenario => {
  const server: McpServer = {
    name: 'oracle',
    command: nodeMount().argv0,
    args: [SERVER],
    env: { SECRET: 'tangerine' },
  };
  return {
    name: `${harness}: a tool of an MCP server`,
    harness,
    tasks: [task('Ask for the secret of Ann.', { mcpServers: [server] })],
    mounts: [
      { host: fileURLToPath(new URL('../../src/scripted/mcp-secret.mjs', import.meta.url)), inside: SERVER },
      nodeMount().mount,
    ],
    script: (view) => (view.replies === 0 ? [call(tool, { name: 'Ann' })] : say('Done.')),
    truth: { calls: { main: 2 }, edges: {}, agents: 0 },
  };
};
