import { TreewardError } from '@treeward/base';
import type { HarnessTask } from './types.js';

/** @throws TreewardError HARNESS_E_UNSUPPORTED naming the field of the task that this harness cannot follow */
export function refuse(
  harness: string,
  task: HarnessTask | undefined,
  fields: readonly ('mcpServers' | 'resume')[],
): void {
  for (const field of fields) {
    const asked = field === 'mcpServers' ? (task?.mcpServers?.length ?? 0) > 0 : task?.resume === true;
    if (!asked) continue;
    throw new TreewardError('HARNESS_E_UNSUPPORTED', `the harness ${harness} has no ${WHAT[field]}`, {
      data: { harness, field },
      hints: [`leave ${field} out, or take claude-code`],
    });
  }
}

const WHAT = { mcpServers: 'MCP servers', resume: 'way to go on with an earlier conversation' } as const;
