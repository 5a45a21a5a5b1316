import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import { z } from 'zod';
import { readJson, TreewardError } from '@treeward/base';
import type { HarnessTask } from '@treeward/harness-adapters';
import type { Mount } from '@treeward/sandbox';

/** Where a task's `mcp/` folder is shown, read-only, inside the sandbox. */
export const MCP_INSIDE = '/opt/mcp';

const file = z.strictObject({
  mcpServers: z.record(
    z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'letters, digits, _ and -'),
    z.strictObject({
      command: z.string().min(1),
      args: z.array(z.string()).default([]),
      env: z.record(z.string(), z.string()).optional(),
    }),
  ),
});

export interface TaskMcp {
  servers: NonNullable<HarnessTask['mcpServers']>;
  mount: Mount;
}

/**
 * A task's own tools: `mcp/servers.json` in the usual form `{"mcpServers": {name: {command, args, env}}}`, with the servers'
 * files beside it. A word that begins with `./` names one of these files. The harness starts them inside the sandbox.
 * @throws TreewardError TASK_E_MCP naming the file and field
 */
export function taskMcp(directory: string): TaskMcp | null {
  const host = join(directory, 'mcp');
  const path = join(host, 'servers.json');
  if (!existsSync(path)) return null;
  const parsed = file.safeParse(readJson<unknown>(path));
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    const field = issue.path.join('.') || '(the whole file)';
    throw new TreewardError('TASK_E_MCP', `${path}: field ${field}: ${issue.message}`, {
      data: { file: path, field },
      hints: ['expected {"mcpServers": {"name": {"command": "python3", "args": ["./server.py"]}}}'],
    });
  }
  const inside = (word: string): string => (word.startsWith('./') ? posix.join(MCP_INSIDE, word) : word);
  const servers = Object.entries(parsed.data.mcpServers).map(([name, { command, args, env }]) => ({
    name,
    command: inside(command),
    args: args.map(inside),
    ...(env && { env }),
  }));
  return { servers, mount: { host, inside: MCP_INSIDE } };
}
