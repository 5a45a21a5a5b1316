import { TreewardError } from '@treeward/base';
import { thinkingOf } from './thinking.js';
import type { HarnessTask, McpServer } from './types.js';

/** @throws TreewardError HARNESS_E_UNSUPPORTED naming the field of the task that this harness cannot follow */
export function refuse(
  harness: string,
  task: HarnessTask | undefined,
  fields: readonly (keyof typeof WHAT)[],
): void {
  for (const field of fields) {
    if (!ASKED[field](task)) continue;
    throw new TreewardError('HARNESS_E_UNSUPPORTED', `the harness ${harness} has no ${WHAT[field]}`, {
      data: { harness, field },
      hints: [`leave ${field} out, or take claude-code`],
    });
  }
}

const WHAT = {
  mcpServers: 'MCP servers',
  resume: 'way to go on with an earlier conversation',
  thinking: 'setting for how much a model thinks',
} as const;

const ASKED: Readonly<Record<keyof typeof WHAT, (task: HarnessTask | undefined) => boolean>> = {
  mcpServers: (task) => (task?.mcpServers?.length ?? 0) > 0,
  resume: (task) => task?.resume === true,
  thinking: (task) => thinkingOf(task) !== null,
};

/**
 * The task's MCP servers.
 * @throws TreewardError HARNESS_E_MCP_NAME for a name that cannot be a part of a tool's name everywhere
 */
export function mcpServersOf(task: HarnessTask | undefined): readonly McpServer[] {
  const servers = task?.mcpServers ?? [];
  for (const { name } of servers) {
    if (/^[A-Za-z0-9_-]{1,32}$/.test(name)) continue;
    throw new TreewardError(
      'HARNESS_E_MCP_NAME',
      `mcpServers: the name "${name}" is not of 1 to 32 letters, digits, dashes and underscores`,
      { data: { name }, hints: ['it becomes a part of the names of the tools that the server offers'] },
    );
  }
  return servers;
}
