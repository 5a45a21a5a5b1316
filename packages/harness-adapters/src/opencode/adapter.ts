import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { modulesOf, packageVersion } from '../cache.js';
import type { HarnessAdapter } from '../types.js';
import { canonicaliseOpencode } from './canonicalise.js';
import { opencodeConfig } from './config.js';
import { identifyOpencode } from './identify.js';
import { parseOpencodeStorage, readOpencodeStorage } from './storage.js';

const PIN = '1.18.33';
const INSIDE = '/opt/harness/opencode';

export const opencode: HarnessAdapter = {
  name: 'opencode',
  pin: PIN,
  dialect: 'openai-chat',
  tools: {
    read: { tool: 'read', arguments: ['filePath'] },
    write: { tool: 'write', arguments: ['filePath', 'content'] },
    edit: { tool: 'edit', arguments: ['filePath', 'oldString', 'newString'] },
    exec: { tool: 'bash', arguments: ['command'] },
  },
  asksTitle: true,
  thinks: true,
  limits: { memory: 2 * 1024 ** 3 },

  async detect() {
    // The build without AVX2, so that it runs on every machine; the package `opencode-ai` only chooses one.
    const host = join(modulesOf('opencode', PIN), `opencode-${process.platform}-${process.arch}-baseline`);
    const version = packageVersion(host);
    if (version === null || !existsSync(join(host, 'bin/opencode'))) return null;
    return { version, mounts: [{ host, inside: INSIDE }], entry: `${INSIDE}/bin/opencode` };
  },

  async prepare() {
    // The environment carries everything, its config too.
  },

  command(sandbox, installed, task, endpoint) {
    return {
      argv: [installed.entry, 'run', '--pure', ...(task.resume ? ['--continue'] : [])],
      run: {
        cwd: sandbox.workspace,
        stdin: task.prompt,
        env: {
          PATH: '/usr/local/bin:/usr/bin:/bin',
          HOME: sandbox.home,
          TERM: 'dumb',
          LANG: 'C.UTF-8',
          NO_COLOR: '1',
          OPENCODE_CONFIG_CONTENT: JSON.stringify(opencodeConfig(endpoint, task)),
          OPENCODE_DISABLE_AUTOUPDATE: '1',
          OPENCODE_DISABLE_MODELS_FETCH: '1',
          OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
          OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
          OPENCODE_DISABLE_PROJECT_CONFIG: '1',
          OPENCODE_DISABLE_CLAUDE_CODE: '1',
        },
      },
    };
  },

  readTranscript: readOpencodeStorage,
  canonicalise: canonicaliseOpencode,
  identify: identifyOpencode,
  parseTranscript: parseOpencodeStorage,
};
