import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { modulesOf, packageVersion } from '../cache.js';
import { editCommand, execCommand, readCommand, writeCommand } from '../shell-verbs.js';
import { thinkingOf } from '../thinking.js';
import { transcriptFiles } from '../transcript-files.js';
import type { HarnessAdapter, ToolNames } from '../types.js';
import { mcpServersOf } from '../unsupported.js';
import { canonicaliseCodex } from './canonicalise.js';
import { codexConfig, mcpOptions, SMALL_TOOLS, thinkingOptions } from './config.js';
import { identifyCodex } from './identify.js';
import { parseCodexTranscript } from './transcript.js';

const PIN = '0.171.0';
const INSIDE = '/opt/harness/codex';
const BINARY = 'vendor/x86_64-unknown-linux-musl/bin/codex';

/** To a model that it does not know, codex offers a shell and nothing else: no file tools, no `apply_patch`. */
const shell = (command: (...values: string[]) => string): ToolNames => ({
  tool: 'exec_command',
  arguments: ['cmd'],
  shell: command,
});

export const codex: HarnessAdapter = {
  name: 'codex',
  pin: PIN,
  dialect: 'openai-responses',
  tools: {
    read: shell(readCommand),
    write: shell(writeCommand),
    edit: shell(editCommand),
    exec: shell(execCommand),
  },
  thinks: true,
  limits: { memory: 1024 ** 3 },

  async detect() {
    const host = join(modulesOf('codex', PIN), `@openai/codex-${process.platform}-${process.arch}`);
    const version = packageVersion(host);
    if (version === null || !existsSync(join(host, BINARY))) return null;
    return {
      version: version.replace(/-[a-z]+-[a-z0-9]+$/, ''), // the platform is a part of this package's version
      mounts: [{ host, inside: INSIDE }],
      entry: `${INSIDE}/${BINARY}`,
    };
  },

  async prepare(sandbox, endpoint) {
    await sandbox.write(`${sandbox.home}/.codex/config.toml`, codexConfig(endpoint));
  },

  command(sandbox, installed, task, endpoint) {
    return {
      argv: [
        installed.entry,
        'exec',
        ...(task.resume ? ['resume', '--last'] : []),
        '--skip-git-repo-check',
        // Its own sandbox cannot nest in ours.
        '--dangerously-bypass-approvals-and-sandbox',
        ...(task.tools === 'all' ? [] : SMALL_TOOLS),
        ...mcpOptions(mcpServersOf(task)),
        ...thinkingOptions(thinkingOf(task)),
        '-', // the prompt comes by stdin: it may start with a dash and be long
      ],
      run: {
        cwd: sandbox.workspace,
        stdin: task.prompt,
        env: {
          PATH: '/usr/local/bin:/usr/bin:/bin',
          HOME: sandbox.home,
          TERM: 'dumb',
          LANG: 'C.UTF-8',
          RUST_LOG: 'off',
          TREEWARD_KEY: endpoint.key,
        },
      },
    };
  },

  readTranscript(sandbox) {
    return transcriptFiles(sandbox, `${sandbox.home}/.codex/sessions`, ['rollout-*.jsonl']);
  },

  canonicalise: canonicaliseCodex,
  identify: identifyCodex,
  parseTranscript: parseCodexTranscript,
};
