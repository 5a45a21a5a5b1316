import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { nodeMount } from '@treeward/sandbox';
import { canonicaliser } from '../canonical/canonicaliser.js';
import { transcriptFiles } from '../transcript-files.js';
import type { HarnessAdapter } from '../types.js';
import { refuse } from '../unsupported.js';
import { parseLoopTranscript } from './transcript.js';

/** The same file from `src/agent-loop` and from `dist/agent-loop`: the compiler does not carry it along. */
const LOOP = fileURLToPath(new URL('../../src/agent-loop/loop.mjs', import.meta.url));
const INSIDE = '/opt/harness/agent-loop';

/** Our own loop: nothing to install, nothing hidden. It runs on the Node that runs us. */
export const agentLoop: HarnessAdapter = {
  name: 'agent-loop',
  pin: '1.0.0',
  dialect: 'openai-chat',
  tools: {
    read: { tool: 'read', arguments: ['path'] },
    write: { tool: 'write', arguments: ['path', 'content'] },
    edit: { tool: 'edit', arguments: ['path', 'oldText', 'newText'] },
    exec: { tool: 'exec', arguments: ['command'] },
  },
  limits: { memory: 512 * 1024 ** 2, disk: 128 * 1024 ** 2 },

  async detect() {
    const version = /^const VERSION = '([^']+)';$/m.exec(readFileSync(LOOP, 'utf8'))?.[1];
    if (version === undefined) return null;
    return {
      version,
      mounts: [{ host: LOOP, inside: `${INSIDE}/loop.mjs` }, nodeMount().mount],
      entry: `${INSIDE}/loop.mjs`,
    };
  },

  async prepare() {
    // Flags and environment carry everything.
  },

  command(sandbox, installed, task, endpoint) {
    refuse('agent-loop', task, ['mcpServers', 'resume', 'thinking']);
    return {
      argv: [nodeMount().argv0, installed.entry],
      run: {
        cwd: sandbox.workspace,
        stdin: task.prompt,
        env: {
          PATH: '/usr/local/bin:/usr/bin:/bin',
          HOME: sandbox.home,
          LANG: 'C.UTF-8',
          LOOP_BASE_URL: `${endpoint.baseUrl}/v1`,
          LOOP_KEY: endpoint.key,
          LOOP_MAX_TURNS: String(task.maxTurns),
          LOOP_TRANSCRIPT: `${sandbox.home}/.agent-loop/transcript.jsonl`,
        },
      },
    };
  },

  readTranscript(sandbox) {
    return transcriptFiles(sandbox, `${sandbox.home}/.agent-loop`, ['*.jsonl']);
  },

  canonicalise: canonicaliser(),
  identify: () => ({ requestClass: 'main', depth: 0 }),
  parseTranscript: parseLoopTranscript,
};
