import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { modulesOf, packageVersion } from '../cache.js';
import { canonicaliser } from '../canonical/canonicaliser.js';
import { OWN_NODE, ownNodeMount } from '../own-node.js';
import { startCache, startOptions } from '../start-cache/start-cache.js';
import { jsonLines } from '../transcripts/lines.js';
import { treeJsonlEntries } from '../transcripts/tree-jsonl.js';
import { thinkingOf } from '../thinking.js';
import { transcriptFiles } from '../transcript-files.js';
import type { HarnessAdapter } from '../types.js';
import { refuse } from '../unsupported.js';

const PIN = '0.73.1';
const INSIDE = '/opt/harness/pi';
const PACKAGE = '@mariozechner/pi-coding-agent';

const starts = startCache('pi', PIN);

/** The smallest of the real ones: four tools, no sub-agents. */
export const pi: HarnessAdapter = {
  name: 'pi',
  pin: PIN,
  dialect: 'openai-chat',
  tools: {
    read: { tool: 'read', arguments: ['path'] },
    write: { tool: 'write', arguments: ['path', 'content'] },
    edit: { tool: 'edit', arguments: ['path', 'edits.0.oldText', 'edits.0.newText'] },
    exec: { tool: 'bash', arguments: ['command'] },
  },
  thinks: true,
  limits: { memory: 1024 ** 3 },

  async detect() {
    const modules = modulesOf('pi', PIN);
    const version = packageVersion(join(modules, PACKAGE));
    const node = ownNodeMount();
    if (version === null || node === null) return null;
    if (!existsSync(join(modules, PACKAGE, 'dist/cli.js'))) return null; // an install that was cut off
    return {
      version,
      mounts: [{ host: modules, inside: `${INSIDE}/node_modules` }, node, ...starts.mounts(version)],
      entry: `${INSIDE}/node_modules/${PACKAGE}/dist/cli.js`,
    };
  },

  warm: (provider) => starts.warm(pi, provider),

  async prepare(sandbox, endpoint, task) {
    const thinks = thinkingOf(task) !== null;
    const provider = {
      baseUrl: `${endpoint.baseUrl}/v1`,
      api: 'openai-completions',
      apiKey: endpoint.key,
      headers: { 'x-rollout-id': endpoint.rolloutId },
      models: [{ id: 'policy', contextWindow: 65536, maxTokens: 4096, ...(thinks && { reasoning: true }) }],
    };
    const models = { providers: { treeward: provider } };
    await sandbox.write(`${sandbox.home}/.pi/agent/models.json`, JSON.stringify(models, null, 1));
  },

  command(sandbox, installed, task) {
    refuse('pi', task, ['mcpServers']);
    const level = thinkingOf(task);
    const start = startOptions(installed);
    return {
      argv: [
        OWN_NODE.argv0,
        ...start.node,
        installed.entry,
        '--print',
        ...['--provider', 'treeward'],
        ...['--model', 'policy'],
        ...(level === null ? [] : ['--thinking', level]),
        ...(task.resume ? ['--continue'] : []),
        // Nothing that lies in a workspace changes how the harness behaves.
        ...['--no-extensions', '--no-skills', '--no-prompt-templates', '--no-themes', '--no-context-files'],
      ],
      run: {
        cwd: sandbox.workspace,
        stdin: task.prompt, // not an argument: a prompt may start with a dash, or with the @ of a file
        env: {
          PATH: '/usr/local/bin:/usr/bin:/bin',
          HOME: sandbox.home,
          TERM: 'dumb',
          LANG: 'C.UTF-8',
          NO_COLOR: '1',
          PI_OFFLINE: '1',
          PI_TELEMETRY: '0',
          ...start.env,
        },
      },
    };
  },

  readTranscript(sandbox) {
    return transcriptFiles(sandbox, `${sandbox.home}/.pi/agent/sessions`, ['*.jsonl']);
  },

  canonicalise: canonicaliser(),

  /** It sends no header; only a request for a summary of the session comes without tools. */
  identify: ({ tools }) => ({ requestClass: tools.length === 0 ? 'compaction' : 'main', depth: 0 }),

  parseTranscript: (files) =>
    [...files].map(([file, bytes]) => ({
      agent: '',
      parentAgent: null,
      spawnedBy: null,
      file,
      entries: treeJsonlEntries(jsonLines(bytes)),
    })),
};
