import { thinkingOf } from '../thinking.js';
import type { Endpoint, HarnessTask } from '../types.js';
import { mcpServersOf } from '../unsupported.js';

/** Tools beyond the four of the adapter. */
const EXTRAS = ['glob', 'grep', 'skill', 'task', 'todowrite', 'webfetch'];

/** opencode's JSON config: one provider, our endpoint; no sharing, no update, nobody to ask for permission. */
export function opencodeConfig(endpoint: Endpoint, task: HarnessTask): Record<string, unknown> {
  const level = thinkingOf(task);
  const servers = mcpServersOf(task).map(({ name, command, args, env }) => [
    name,
    { type: 'local', command: [command, ...args], enabled: true, ...(env && { environment: env }) },
  ]);
  return {
    autoupdate: false,
    share: 'disabled',
    snapshot: false,
    lsp: false,
    formatter: false,
    // A tool that is denied altogether is not offered either.
    permission: {
      '*': 'allow',
      ...(task.tools !== 'all' && Object.fromEntries(EXTRAS.map((tool) => [tool, 'deny']))),
    },
    model: 'treeward/policy',
    small_model: 'treeward/policy',
    provider: {
      treeward: {
        npm: '@ai-sdk/openai-compatible',
        name: 'treeward',
        options: {
          baseURL: `${endpoint.baseUrl}/v1`,
          apiKey: endpoint.key,
          headers: { 'x-rollout-id': endpoint.rolloutId },
          timeout: false,
        },
        models: {
          policy: {
            name: 'policy',
            limit: { context: 65536, output: 4096 },
            ...(level !== null && { reasoning: true, options: { reasoningEffort: level } }),
          },
        },
      },
    },
    enabled_providers: ['treeward'],
    ...(servers.length > 0 && { mcp: Object.fromEntries(servers) as Record<string, unknown> }),
  };
}
