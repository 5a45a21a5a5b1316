import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readJson } from '@treeward/base';
import type { RolloutResult } from '@treeward/rollout';
import { buildImage, daemonUnavailable, startDaemon, type Daemon } from '@treeward/sandbox';
import { examine } from './doctor.js';
import { runCli } from './testing/run-cli.js';
import { tinyRun } from './testing/tiny-run.js';

const unavailable = daemonUnavailable();
if (unavailable) console.warn(`skipped: no Docker daemon can be had here: ${unavailable}`);

describe('sandbox.provider of a run', () => {
  let base: Awaited<ReturnType<typeof tinyRun>>;
  beforeAll(async () => {
    base = await tinyRun(1);
  });
  afterAll(() => rmSync(base.directory, { recursive: true, force: true }));
  const train = (name: string, socket: string): ReturnType<typeof runCli> =>
    runCli([
      ...['train', '@', base.config, '--run-dir', join(base.directory, name), '--json'],
      ...['--set', 'sandbox.provider=docker', '--set', `sandbox.socket=${socket}`],
    ]);

  it('a daemon that is not there ends the run before its first rollout, and is named', async () => {
    const { code, stderr } = await train('nowhere', join(base.directory, 'none.sock'));
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/SANDBOX_E_TIER[^]*sandbox\.provider = "docker"[^]*none\.sock/);
    expect(readdirSync(join(base.directory, 'nowhere'))).not.toContain('rollouts');
  });

  describe.skipIf(unavailable !== null)(`docker (${unavailable ?? 'on a daemon of its own'})`, () => {
    let daemon: Daemon;
    let image: string;
    beforeAll(async () => {
      daemon = await startDaemon();
      image = await buildImage({ socket: daemon.socket, say: (text) => console.info(text) });
    }, 400_000);
    afterAll(() => daemon?.stop());

    it('every rollout of a step runs in a container and is graded in one', async () => {
      const { code, stderr, stdout } = await train('docker', daemon.socket);
      expect(stderr + stdout).toContain('step 1/1');
      expect(code).toBe(0);
      const rollouts = join(base.directory, 'docker', 'rollouts');
      const results = readdirSync(rollouts).map((name) =>
        readJson<RolloutResult>(join(rollouts, name, 'result.json')),
      );
      expect(results).toHaveLength(6);
      for (const { sandbox, fault, reward } of results) {
        expect({ sandbox, fault }).toEqual({
          sandbox: { provider: 'docker', tier: 'full', image },
          fault: null,
        });
        expect(reward).not.toBeNull();
      }
    });

    it('the doctor tries the daemon', async () => {
      const before = process.env['DOCKER_HOST'];
      process.env['DOCKER_HOST'] = `unix://${daemon.socket}`;
      try {
        const { docker } = await examine();
        expect(docker.tier).toBe('full');
        expect(docker.reasons.join()).toContain(image);
      } finally {
        if (before === undefined) delete process.env['DOCKER_HOST'];
        else process.env['DOCKER_HOST'] = before;
      }
    });
  });
});
