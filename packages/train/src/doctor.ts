import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { adapters, probeHarness } from '@treeward/harness-adapters';
import { getBackendInfo } from '@treeward/native';
import { llamaVersion } from '@treeward/policy';
import { BubblewrapProvider, DockerProvider, type SandboxTier } from '@treeward/sandbox';

export interface DoctorReport {
  node: { version: string };
  /** `warnings` (with `probe`): how the installed CLI behaves otherwise than the pinned one did. */
  harnesses: Record<string, { version: string | null; pin: string; warnings?: string[] }>;
  tensorflow: { version: string } | null;
  native: { backend: string } | null;
  llama: { version: string };
  sandbox: { tier: SandboxTier; reasons: string[] };
  nvcc: string | null;
  /** The docker provider on the default daemon: tier `none` where it cannot be used, and why. */
  docker: { tier: SandboxTier; reasons: string[] };
  missing: { what: string; needed: boolean; fix: string }[];
}

const exec = promisify(execFile);

async function output(command: string, args: readonly string[], pattern: RegExp): Promise<string | null> {
  try {
    const { stdout } = await exec(command, [...args], {
      timeout: 20_000,
      env: { ...process.env, TF_CPP_MIN_LOG_LEVEL: '3' },
    });
    return pattern.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** In a process of its own: a native library that cannot load must not take the doctor with it. */
const tensorflowVersion = (): Promise<string | null> =>
  output(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { tensorflowVersion } = await import(${JSON.stringify(import.meta.resolve('@treeward/learner'))}); console.log('tf', tensorflowVersion());`,
    ],
    /tf (\S+)/,
  );

/** @param probe Run every installed harness once on a scripted server (half a minute). @default false */
export async function examine({ probe = false } = {}): Promise<DoctorReport> {
  const missing: DoctorReport['missing'] = [];
  const harnesses: DoctorReport['harnesses'] = {};
  for (const adapter of adapters) {
    const installed = await adapter.detect();
    harnesses[adapter.name] = { version: installed?.version ?? null, pin: adapter.pin };
    if (!installed)
      missing.push({
        what: adapter.name,
        needed: false,
        fix: 'npm start installs it; until then its rollouts and tests are skipped',
      });
  }
  const sandbox = await new BubblewrapProvider().probe();
  if (sandbox.tier === 'none')
    missing.push({ what: 'bubblewrap sandbox', needed: true, fix: sandbox.reasons.join('; ') });

  const containers = new DockerProvider();
  const docker = await containers.probe();
  await containers.close();
  if (docker.tier === 'none')
    missing.push({
      what: 'docker sandbox',
      needed: false,
      fix: `only for sandbox.provider = "docker": ${docker.reasons.join('; ')}`,
    });

  if (probe && sandbox.tier !== 'none') {
    const provider = new BubblewrapProvider();
    for (const adapter of adapters) {
      const harness = harnesses[adapter.name]!;
      if (harness.version === null) continue;
      try {
        harness.warnings = (await probeHarness(adapter, { provider })).warnings;
      } catch (error) {
        harness.warnings = [`the trial run failed: ${(error as Error).message}`];
      }
    }
    await provider.close();
  }

  const tensorflow = await tensorflowVersion();
  if (!tensorflow)
    missing.push({ what: 'libtensorflow', needed: true, fix: 'node tools/bootstrap.mjs setup' });

  let native: DoctorReport['native'] = null;
  try {
    native = getBackendInfo();
  } catch {
    missing.push({ what: 'native addon', needed: true, fix: 'npx nx run native:build-native' });
  }
  return {
    node: { version: process.version },
    harnesses,
    tensorflow: tensorflow ? { version: tensorflow } : null,
    native,
    llama: { version: llamaVersion() },
    sandbox,
    nvcc: await output('nvcc', ['--version'], /release ([\d.]+)/),
    docker,
    missing,
  };
}
