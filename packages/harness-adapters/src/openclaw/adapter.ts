import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { modulesOf, packageVersion } from '../cache.js';
import { OWN_NODE, ownNodeMount } from '../own-node.js';
import { sessionUuid } from '../session-id.js';
import { startCache, startOptions } from '../start-cache/start-cache.js';
import { thinkingOf } from '../thinking.js';
import { transcriptFiles } from '../transcript-files.js';
import type { HarnessAdapter } from '../types.js';
import { canonicaliseOpenclaw } from './canonicalise.js';
import { openclawConfig } from './config.js';
import { identifyOpenclaw } from './identify.js';
import { parseOpenclawTranscript } from './transcript.js';

const PIN = '2026.5.28';
const here = (file: string): string => fileURLToPath(new URL(`../../src/openclaw/${file}`, import.meta.url));
/**
 * Node parses the export list of a module's package again for every bare import, and OpenClaw's is 45 KB in a manifest
 * of 105 KB: half of its start-up time and 240 MB. Only plugins by third parties are imported through that list, so
 * the sandbox shows a manifest without it. The installed files stay as they came; the requests are the same.
 */
const SLIM_MANIFEST = here('slim-manifest.json');
const GATEWAY_RUN = here('gateway-run.mjs');
const INSIDE = '/opt/harness/openclaw';
const GATEWAY_PORT = 18789; // of the sandbox's own loopback: nobody else is there

/** `local`: one process. `gateway`: a gateway and its client, as people run it; only there has it sub-agents. */
function openclawAdapter(mode: 'local' | 'gateway'): HarnessAdapter {
  const gateway = mode === 'gateway';
  const name = gateway ? 'openclaw-gateway' : 'openclaw';
  const starts = startCache(name, PIN, 'openclaw');
  const adapter: HarnessAdapter = {
    name,
    pin: PIN,
    dialect: 'openai-chat',
    tools: {
      read: { tool: 'read', arguments: ['path'] },
      write: { tool: 'write', arguments: ['path', 'content'] },
      // The one shape it takes: a list of replacements.
      edit: { tool: 'edit', arguments: ['path', 'edits.0.oldText', 'edits.0.newText'] },
      exec: { tool: 'exec', arguments: ['command'] },
    },
    thinks: true,
    limits: { memory: (gateway ? 2.5 : 1.5) * 1024 ** 3 },
    // 293 MiB more of the machine's for each of 25, 350 MiB resident.
    ...(!gateway && { usualMemory: 384 * 1024 ** 2 }),

    async detect() {
      const modules = modulesOf('openclaw', PIN);
      const node = ownNodeMount();
      const version = packageVersion(join(modules, 'openclaw'));
      if (version === null || node === null) return null;
      return {
        version,
        mounts: [
          { host: modules, inside: `${INSIDE}/node_modules` },
          // Only beside the version that it names: another one runs slower, not wrongly.
          ...(version === PIN
            ? [{ host: SLIM_MANIFEST, inside: `${INSIDE}/node_modules/openclaw/package.json` }]
            : []),
          ...(gateway ? [{ host: GATEWAY_RUN, inside: `${INSIDE}/gateway-run.mjs` }] : []),
          node,
          ...starts.mounts(version),
        ],
        entry: `${INSIDE}/node_modules/openclaw/openclaw.mjs`,
      };
    },

    warm: (provider) => starts.warm(adapter, provider),

    async prepare(sandbox, endpoint, task) {
      const config = {
        ...openclawConfig(sandbox.workspace, endpoint, task),
        ...(gateway && {
          logging: {}, // the gateway's own output, which says when it is ready; the client's stays clean
          gateway: {
            mode: 'local',
            bind: 'loopback',
            port: GATEWAY_PORT,
            auth: { mode: 'token', token: sessionUuid(`${endpoint.rolloutId}/gateway`) },
          },
        }),
      };
      await sandbox.write(`${sandbox.home}/.openclaw/openclaw.json`, JSON.stringify(config, null, 1));
    },

    command(sandbox, installed, task, endpoint) {
      const start = startOptions(installed);
      const level = thinkingOf(task);
      const launcher = [`${INSIDE}/gateway-run.mjs`, String(GATEWAY_PORT)];
      return {
        argv: [
          OWN_NODE.argv0,
          ...start.node,
          ...(gateway ? launcher : []),
          installed.entry,
          'agent',
          ...(gateway ? [] : ['--local']),
          // The same id goes on with the same conversation: `task.resume` needs no more.
          ...['--session-id', sessionUuid(endpoint.rolloutId)],
          ...(level === null ? [] : ['--thinking', level]),
          `--message=${task.prompt}`, // one word: a prompt may start with a dash
        ],
        run: {
          cwd: sandbox.workspace,
          stdin: '',
          env: {
            PATH: `${OWN_NODE.bin}:/usr/local/bin:/usr/bin:/bin`,
            HOME: sandbox.home,
            TERM: 'dumb',
            LANG: 'C.UTF-8',
            NO_COLOR: '1',
            // Nothing of the 100-odd bundled plugins is on the tool list: a third of the start-up time.
            OPENCLAW_DISABLE_BUNDLED_PLUGINS: '1',
            // No second process, and no code cache written into a temp directory that dies with the rollout; with the second
            // it takes the folder that it is given as it is, instead of starting again with one of its own naming.
            OPENCLAW_NO_RESPAWN: '1',
            OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: '1',
            ...start.env,
          },
        },
      };
    },

    readTranscript(sandbox) {
      return transcriptFiles(sandbox, `${sandbox.home}/.openclaw/agents/main/sessions`, [
        '*.jsonl',
        'sessions.json',
      ]);
    },

    canonicalise: canonicaliseOpenclaw,
    identify: identifyOpenclaw,
    parseTranscript: parseOpenclawTranscript,
  };
  return adapter;
}

export const openclaw = openclawAdapter('local');
export const openclawGateway = openclawAdapter('gateway');
