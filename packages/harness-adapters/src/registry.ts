import { TreewardError } from '@treeward/base';
import { agentLoop } from './agent-loop/adapter.js';
import { harnessCache } from './cache.js';
import { claudeCode } from './claude-code/adapter.js';
import { codex } from './codex/adapter.js';
import { openclaw, openclawGateway } from './openclaw/adapter.js';
import { NODE_PIN } from './own-node.js';
import { opencode } from './opencode/adapter.js';
import { pi } from './pi/adapter.js';
import type { HarnessAdapter, Installed } from './types.js';

const known: HarnessAdapter[] = [agentLoop, claudeCode, openclaw, openclawGateway, codex, pi, opencode];

/** Every harness that rollouts can run in this process: ours, and those that `registerAdapter` added. */
export const adapters: readonly HarnessAdapter[] = known;

/**
 * Adds a harness that is not part of this package, to this process: each one that names it in a configuration or runs it must.
 * @returns takes it out again
 * @throws TreewardError HARNESS_E_NAME for a name that is taken or would not do as a part of a path
 */
export function registerAdapter(adapter: HarnessAdapter): () => void {
  const { name } = adapter;
  const taken = known.some((candidate) => candidate.name === name);
  if (taken || !/^[a-z][a-z0-9-]{0,39}$/.test(name)) {
    throw new TreewardError(
      'HARNESS_E_NAME',
      taken
        ? `there is a harness "${name}" already`
        : `"${name}" is no name for a harness: lower-case letters, digits and dashes, at most 40`,
      { data: { harness: name } },
    );
  }
  known.push(adapter);
  return () => {
    const index = known.indexOf(adapter);
    if (index >= 0) known.splice(index, 1);
  };
}

/** @throws TreewardError HARNESS_E_UNKNOWN, listing the names there are */
export function adapterByName(name: string): HarnessAdapter {
  const adapter = known.find((candidate) => candidate.name === name);
  if (adapter) return adapter;
  const names = known.map((candidate) => candidate.name).join(', ');
  throw new TreewardError('HARNESS_E_UNKNOWN', `there is no harness "${name}"; known: ${names}`, {
    data: { harness: name },
    hints: ['check the spelling in the configuration', 'a harness of your own: registerAdapter'],
  });
}

/** @throws TreewardError HARNESS_E_MISSING with the command that installs it */
export async function requireInstalled(adapter: HarnessAdapter): Promise<Installed> {
  const installed = await adapter.detect();
  if (installed) return installed;
  const { name, pin } = adapter;
  const ours = INSTALLS[name];
  throw new TreewardError(
    'HARNESS_E_MISSING',
    ours
      ? `the harness ${name} ${pin} is not installed below ${harnessCache()}`
      : `the harness ${name} ${pin} is not installed`,
    {
      data: { harness: name, version: pin, cache: harnessCache() },
      hints: [
        ...(ours ? ['run `npm start`: it installs the pinned harnesses'] : []),
        ...(ours ?? []).map(({ directory, spec }) => {
          const path = `${harnessCache()}/${directory}`;
          return `or by hand: mkdir -p ${path} && cd ${path} && npm init -y && npm install -E --ignore-scripts ${spec}`;
        }),
      ],
    },
  );
}

const platform = `${process.platform}-${process.arch}`;
const install = (name: string, version: string, spec: string): { directory: string; spec: string } => ({
  directory: `${name}@${version}`,
  spec: `${spec}@${version}`,
});
const NODE = install('node', NODE_PIN, `node-${platform}`);
const OPENCLAW = [install('openclaw', openclaw.pin, 'openclaw'), NODE];

/** What to install where for harnesses that are not our own code; the bootstrap in `tools/` does the same. */
const INSTALLS: Readonly<Record<string, readonly { directory: string; spec: string }[]>> = {
  'claude-code': [install('claude-code', claudeCode.pin, '@anthropic-ai/claude-code')],
  openclaw: OPENCLAW,
  'openclaw-gateway': OPENCLAW,
  codex: [install('codex', codex.pin, '@openai/codex')],
  pi: [install('pi', pi.pin, '@mariozechner/pi-coding-agent'), NODE],
  opencode: [install('opencode', opencode.pin, `opencode-${platform}-baseline`)],
};
