import type { Endpoint, McpServer } from '../types.js';

/**
 * `~/.codex/config.toml`: one model provider, our endpoint, and no part of codex that a rollout cannot use (update checks,
 * analytics, skills and their manual, a history beyond the session).
 */
export const codexConfig = (endpoint: Endpoint): string => `model = "policy"
model_provider = "treeward"
model_context_window = 65536
check_for_update_on_startup = false
web_search = "disabled"
include_permissions_instructions = false

[model_providers.treeward]
name = "treeward"
base_url = ${toml(`${endpoint.baseUrl}/v1`)}
env_key = "TREEWARD_KEY"
wire_api = "responses"
http_headers = { x-rollout-id = ${toml(endpoint.rolloutId)} }
request_max_retries = 6
stream_max_retries = 6
stream_idle_timeout_ms = 3600000

[skills]
include_instructions = false

[skills.bundled]
enabled = false

[analytics]
enabled = false

[history]
persistence = "none"

[tools]
experimental_request_user_input = { enabled = false }

[features]
shell_snapshot = false
apps = false
plugins = false
image_generation = false
`;

/** What the small tool list does without. */
export const SMALL_TOOLS = ['multi_agent', 'goals', 'view_image'].flatMap((feature) => [
  '--disable',
  feature,
]);

/** As options, so that they come with the task: `-c mcp_servers.<name>={…}`. */
export const mcpOptions = (servers: readonly McpServer[]): string[] =>
  servers.flatMap(({ name, command, args, env }) => {
    const fields = [`command=${toml(command)}`, `args=[${args.map(toml).join(',')}]`];
    const variables = Object.entries(env ?? {}).map(([key, value]) => `${toml(key)}=${toml(value)}`);
    if (variables.length > 0) fields.push(`env={${variables.join(',')}}`);
    return ['-c', `mcp_servers.${name}={${fields.join(',')}}`];
  });

/** To a model that it does not know it sends no effort unless it is told that the model takes one. */
export const thinkingOptions = (level: string | null): string[] =>
  level === null
    ? []
    : ['-c', `model_reasoning_effort=${toml(level)}`, '-c', 'model_supports_reasoning_summaries=true'];

/** A basic string of TOML: JSON's escapes are a part of it. */
const toml = (value: string): string => JSON.stringify(value);
