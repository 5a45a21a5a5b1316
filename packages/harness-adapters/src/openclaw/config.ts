import { THINKING_LEVELS, thinkingOf } from '../thinking.js';
import type { Endpoint, HarnessTask } from '../types.js';
import { mcpServersOf } from '../unsupported.js';

/** Longer than any rollout: the rollout's own clock ends a run, not an idle default of two minutes. */
const TIMEOUT_SECONDS = 3600;

const SMALL_TOOLS = ['read', 'write', 'edit', 'exec'];

/** A server's tools are called `<server>__<tool>` and must be on the list as well. */
const extras = (task: HarnessTask | undefined): string[] =>
  (task?.mcpServers ?? []).map(({ name }) => `${name}__*`);

/** `~/.openclaw/openclaw.json`: one model provider, our endpoint, and the tools that the task asks for. */
export function openclawConfig(
  workspace: string,
  endpoint: Endpoint,
  task: HarnessTask | undefined,
): Record<string, unknown> {
  const thinks = thinkingOf(task) !== null;
  const servers = mcpServersOf(task).map(({ name, command, args, env }) => [
    name,
    { command, args, ...(env && { env }) },
  ]);
  return {
    agents: {
      defaults: {
        workspace,
        skipBootstrap: true,
        timeoutSeconds: TIMEOUT_SECONDS,
        model: { primary: 'treeward/policy' },
      },
    },
    models: {
      mode: 'replace',
      providers: {
        treeward: {
          baseUrl: `${endpoint.baseUrl}/v1`,
          apiKey: endpoint.key,
          api: 'openai-completions',
          timeoutSeconds: TIMEOUT_SECONDS,
          headers: { 'x-rollout-id': endpoint.rolloutId },
          models: [
            {
              id: 'policy',
              name: 'policy',
              reasoning: thinks,
              // Of an endpoint that it does not know it assumes that it takes no effort.
              ...(thinks && {
                compat: {
                  supportsReasoningEffort: true,
                  supportedReasoningEfforts: THINKING_LEVELS.filter((level) => level !== 'off'),
                },
              }),
              input: ['text'],
              cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
              contextWindow: 65536,
              maxTokens: 4096,
            },
          ],
        },
      },
    },
    // Its log lines go to stdout, where the final text belongs; the transcript has more than they say.
    logging: { consoleLevel: 'silent', level: 'silent' },
    tools: { profile: 'coding', ...(task?.tools !== 'all' && { allow: [...SMALL_TOOLS, ...extras(task)] }) },
    ...(servers.length > 0 && { mcp: { servers: Object.fromEntries(servers) as Record<string, unknown> } }),
  };
}
