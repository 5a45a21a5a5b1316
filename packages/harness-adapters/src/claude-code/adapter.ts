import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { modulesOf, packageVersion } from '../cache.js';
import { sessionUuid } from '../session-id.js';
import { thinkingOf } from '../thinking.js';
import { transcriptFiles } from '../transcript-files.js';
import type { HarnessAdapter, McpServer } from '../types.js';
import { mcpServersOf } from '../unsupported.js';
import { canonicaliseClaudeCode } from './canonicalise.js';
import { identifyClaudeCode } from './identify.js';
import { parseClaudeTranscript } from './transcript.js';

const PIN = '2.1.332';
const INSIDE = '/opt/harness/claude-code';

/** Its lowest effort is `low`; `tokens` more of a reply, in which thinking counts. */
const THINKING = {
  minimal: { effort: 'low', tokens: 1024 },
  low: { effort: 'low', tokens: 4000 },
  medium: { effort: 'medium', tokens: 10_000 },
  high: { effort: 'high', tokens: 32_000 },
} as const;
const REPLY_TOKENS = 2048;

/**
 * Less of what a rollout cannot use (update checks, telemetry, memory, git advice), so that runs are alike and a request is
 * 13 KB. `no betas` and `no tool search` keep all tools in the request.
 */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_BUG_COMMAND: '1',
  CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: '1',
  ENABLE_TOOL_SEARCH: 'false',
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
  CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS: '1',
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
  CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
  // The bypass of permission prompts is refused to root (tiers without an own uid) unless it is told of the sandbox.
  IS_SANDBOX: '1',
};

export const claudeCode: HarnessAdapter = {
  name: 'claude-code',
  pin: PIN,
  dialect: 'anthropic-messages',
  tools: {
    read: { tool: 'Read', arguments: ['file_path'] },
    write: { tool: 'Write', arguments: ['file_path', 'content'] },
    edit: { tool: 'Edit', arguments: ['file_path', 'old_string', 'new_string'] },
    exec: { tool: 'Bash', arguments: ['command'] },
  },
  thinks: true,
  limits: { memory: 1024 ** 3 },
  usualMemory: 320 * 1024 ** 2, // 93 MiB more of the machine's for each of 32, 235 MiB resident

  async detect() {
    // The package only wraps this one: a standalone binary that needs no Node.
    const host = join(
      modulesOf('claude-code', PIN),
      `@anthropic-ai/claude-code-${process.platform}-${process.arch}`,
    );
    const version = packageVersion(host);
    if (version === null || !existsSync(join(host, 'claude'))) return null;
    return { version, mounts: [{ host, inside: INSIDE }], entry: `${INSIDE}/claude` };
  },

  async prepare() {
    // Everything it needs comes by flags and environment; HOME and the temp directory are private already.
  },

  command(sandbox, installed, task, endpoint) {
    const level = thinkingOf(task);
    const thinking = level === null ? null : THINKING[level];
    return {
      argv: [
        installed.entry,
        '-p',
        ...['--output-format', 'text'],
        ...(task.tools === 'all' ? [] : ['--tools', 'Bash,Read,Edit,Write']),
        ...mcpOptions(mcpServersOf(task)),
        '--dangerously-skip-permissions',
        ...['--model', 'treeward-policy'],
        ...[task.resume ? '--resume' : '--session-id', sessionUuid(endpoint.rolloutId)],
        ...['--max-turns', String(task.maxTurns)],
      ],
      run: {
        cwd: sandbox.workspace,
        stdin: task.prompt, // not an argument: a prompt may start with a dash and be long
        env: {
          ...QUIET,
          PATH: '/usr/local/bin:/usr/bin:/bin',
          HOME: sandbox.home,
          TERM: 'dumb',
          LANG: 'C.UTF-8',
          CLAUDE_CODE_MAX_RETRIES: '6',
          CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(REPLY_TOKENS + (thinking?.tokens ?? 0)),
          // Of a model that it does not know it assumes that it takes no effort.
          ...(thinking
            ? { CLAUDE_CODE_EFFORT_LEVEL: thinking.effort, CLAUDE_CODE_ALWAYS_ENABLE_EFFORT: '1' }
            : { MAX_THINKING_TOKENS: '0' }),
          ANTHROPIC_BASE_URL: endpoint.baseUrl,
          ANTHROPIC_API_KEY: endpoint.key,
          ANTHROPIC_CUSTOM_HEADERS: `x-rollout-id:${endpoint.rolloutId}`,
        },
      },
    };
  },

  readTranscript(sandbox) {
    return transcriptFiles(sandbox, `${sandbox.home}/.claude/projects`, ['*.jsonl', '*.meta.json']);
  },

  canonicalise: canonicaliseClaudeCode,
  identify: identifyClaudeCode,
  parseTranscript: parseClaudeTranscript,
};

/** `--strict-mcp-config`: none but these, whatever lies in the workspace. */
function mcpOptions(servers: readonly McpServer[]): string[] {
  if (servers.length === 0) return [];
  const mcpServers = Object.fromEntries(
    servers.map(({ name, command, args, env }) => [name, { command, args, ...(env && { env }) }]),
  );
  return ['--strict-mcp-config', '--mcp-config', JSON.stringify({ mcpServers })];
}
