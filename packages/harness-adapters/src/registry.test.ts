import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { modulesOf, packageVersion } from './cache.js';
import { NODE_PIN } from './own-node.js';
import { adapterByName, adapters, requireInstalled } from './registry.js';

const NAMES = ['agent-loop', 'claude-code', 'openclaw', 'openclaw-gateway', 'codex', 'pi', 'opencode'];

let cache: string;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'harness-cache-'));
  vi.stubEnv('TREEWARD_CACHE', cache);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(cache, { recursive: true });
});

const install = (directory: string, version: string, ...files: string[]): void => {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ version }));
  for (const file of files) {
    mkdirSync(join(directory, file, '..'), { recursive: true });
    writeFileSync(join(directory, file), '');
  }
};
const platform = `${process.platform}-${process.arch}`;

describe('registry', () => {
  it('finds each adapter by its name', () => {
    expect(adapters.map(({ name }) => name)).toEqual(NAMES);
    for (const adapter of adapters) expect(adapterByName(adapter.name)).toBe(adapter);
  });

  it('names the known ones when asked for another', () => {
    expect(() => adapterByName('claude')).toThrow(
      expect.objectContaining({
        code: 'HARNESS_E_UNKNOWN',
        message: `there is no harness "claude"; known: ${NAMES.join(', ')}`,
      }),
    );
  });

  it.each(NAMES.slice(1))('says how to install %s', async (name) => {
    const adapter = adapterByName(name);
    const directory = `${name.replace('-gateway', '')}@${adapter.pin}`;
    await expect(requireInstalled(adapter)).rejects.toMatchObject({
      code: 'HARNESS_E_MISSING',
      message: expect.stringContaining(`${name} ${adapter.pin}`),
      hints: expect.arrayContaining([
        expect.stringContaining('npm start'),
        expect.stringMatching(new RegExp(`cd ${cache}/harnesses/${directory} .* \\S+@${adapter.pin}$`)),
      ]),
    });
  });

  it('always has the agent loop', async () => {
    const installed = await requireInstalled(adapterByName('agent-loop'));
    expect(installed.version).toBe('1.0.0');
    expect(installed.mounts.map(({ inside }) => inside)).toContain(installed.entry);
  });

  it('reads the version that is there, not the pin', async () => {
    const claudeCode = adapterByName('claude-code');
    const host = join(modulesOf('claude-code', claudeCode.pin), `@anthropic-ai/claude-code-${platform}`);
    install(host, '9.9.9');
    expect(await claudeCode.detect()).toBeNull(); // a manifest without the binary: interrupted
    install(host, '9.9.9', 'claude');
    expect(await claudeCode.detect()).toMatchObject({ version: '9.9.9', mounts: [{ host }] });
  });

  it('counts OpenClaw as installed only with its Node', async () => {
    const openclaw = adapterByName('openclaw');
    install(join(modulesOf('openclaw', openclaw.pin), 'openclaw'), '2026.0.1');
    expect(await openclaw.detect()).toBeNull();
    install(join(modulesOf('node', '24.21.0'), `node-${platform}`), '24.21.0', 'bin/node');
    expect(await openclaw.detect()).toMatchObject({ version: '2026.0.1' });
    expect((await openclaw.detect())?.mounts.map(({ inside }) => inside)).toEqual([
      '/opt/harness/openclaw/node_modules',
      '/opt/harness/node',
      '/opt/harness/resolutions.mjs',
    ]);
  });

  it('counts pi as installed only with the Node that it runs on', async () => {
    const pi = adapterByName('pi');
    const host = join(modulesOf('pi', pi.pin), '@mariozechner/pi-coding-agent');
    install(host, '0.70.0', 'dist/cli.js');
    expect(await pi.detect()).toBeNull();
    install(join(modulesOf('node', NODE_PIN), `node-${platform}`), NODE_PIN, 'bin/node');
    expect(await pi.detect()).toMatchObject({ version: '0.70.0' });
  });

  it('shows the pinned OpenClaw a short manifest of the same version', async () => {
    const openclaw = adapterByName('openclaw');
    install(join(modulesOf('openclaw', openclaw.pin), 'openclaw'), openclaw.pin);
    install(join(modulesOf('node', NODE_PIN), `node-${platform}`), NODE_PIN, 'bin/node');
    const slim = (await openclaw.detect())!.mounts.find(({ inside }) => inside.endsWith('/package.json'))!;
    expect(packageVersion(dirname(slim.host), basename(slim.host))).toBe(openclaw.pin);
  });

  it('pins what the bootstrap installs', () => {
    const file = new URL('../../../tools/pins.json', import.meta.url);
    const { harnesses } = JSON.parse(readFileSync(file, 'utf8')) as {
      harnesses: Record<string, { directory: string }>;
    };
    const ours = NAMES.filter((name) => name !== 'agent-loop' && name !== 'openclaw-gateway').map(
      (name) => [name, `${name}@${adapterByName(name).pin}`] as const,
    );
    expect(Object.entries(harnesses).map(([name, { directory }]) => [name, directory])).toEqual(
      expect.arrayContaining([...ours.map((pair) => [...pair]), ['node', `node@${NODE_PIN}`]]),
    );
    expect(Object.keys(harnesses)).toHaveLength(ours.length + 1);
  });

  it('takes a manifest that was cut off for an absent one', () => {
    writeFileSync(join(cache, 'package.json'), '{"version": "1.');
    expect(packageVersion(cache)).toBeNull();
  });
});
