import { TreewardError } from '@treeward/base';
import { agentLoop } from './agent-loop/adapter.js';
import { harnessCache } from './cache.js';
import { claudeCode } from './claude-code/adapter.js';
import { NODE_PIN, openclaw } from './openclaw/adapter.js';
import type { HarnessAdapter, Installed } from './types.js';

/** Every harness that rollouts can run. A new one is one folder with an adapter, and one entry here. */
export const adapters: readonly HarnessAdapter[] = [agentLoop, claudeCode, openclaw];

/** @throws TreewardError HARNESS_E_UNKNOWN, listing the names there are */
export function adapterByName(name: string): HarnessAdapter {
  const adapter = adapters.find((candidate) => candidate.name === name);
  if (adapter) return adapter;
  const known = adapters.map((candidate) => candidate.name).join(', ');
  throw new TreewardError('HARNESS_E_UNKNOWN', `there is no harness "${name}"; known: ${known}`, {
    data: { harness: name },
    hints: ['check the spelling in the configuration'],
  });
}

/** @throws TreewardError HARNESS_E_MISSING with the command that installs it */
export async function requireInstalled(adapter: HarnessAdapter): Promise<Installed> {
  const installed = await adapter.detect();
  if (installed) return installed;
  const { name, pin } = adapter;
  throw new TreewardError(
    'HARNESS_E_MISSING',
    `the harness ${name} ${pin} is not installed below ${harnessCache()}`,
    {
      data: { harness: name, version: pin, cache: harnessCache() },
      hints: [
        'run `npm start`: it installs the pinned harnesses',
        ...(INSTALLS[name] ?? []).map(({ directory, spec }) => {
          const path = `${harnessCache()}/${directory}`;
          return `or by hand: mkdir -p ${path} && cd ${path} && npm init -y && npm install -E --ignore-scripts ${spec}`;
        }),
      ],
    },
  );
}

/** What to install where for harnesses that are not our own code; the bootstrap in `tools/` does the same. */
const INSTALLS: Readonly<Record<string, readonly { directory: string; spec: string }[]>> = {
  'claude-code': [
    { directory: `claude-code@${claudeCode.pin}`, spec: `@anthropic-ai/claude-code@${claudeCode.pin}` },
  ],
  openclaw: [
    { directory: `openclaw@${openclaw.pin}`, spec: `openclaw@${openclaw.pin}` },
    { directory: `node@${NODE_PIN}`, spec: `node-${process.platform}-${process.arch}@${NODE_PIN}` },
  ],
};
