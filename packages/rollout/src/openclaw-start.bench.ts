// What OpenClaw's start costs in a sandbox: CPU of a whole run of one call, and the time until that call.
// Method: the real CLI on a scripted model, the ways take turns, medians. `as_installed`: as its package comes (all bundled
// plugins, its own manifest, its own compile cache in the private temp directory); `slim`: without plugins that no tool
// needs, with a manifest that Node parses faster; `default`: what rollouts use, with the read-only start cache (compiled code, which file an import means) as well.
// Run: npx nx run rollout:openclaw-start -- [--n 5] [--out FILE]
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { writeBenchRows, type BenchRow } from '@treeward/base';
import { adapterByName, type HarnessAdapter } from '@treeward/harness-adapters';
import { inOrder, runScripted, say } from '@treeward/harness-adapters/testing';
import { BubblewrapProvider } from '@treeward/sandbox';

const { values } = parseArgs({ options: { n: { type: 'string', default: '5' }, out: { type: 'string' } } });
const n = Number(values.n);
const openclaw = adapterByName('openclaw');
const provider = new BubblewrapProvider({ run: 'openclaw-start' });

/** The same CLI without some of its mounts, with another environment. */
function variant(hides: RegExp, environment: (env: Record<string, string>) => void): HarnessAdapter {
  const { warm: _, ...rest } = openclaw;
  return {
    ...rest,
    async detect() {
      const installed = await openclaw.detect();
      return (
        installed && { ...installed, mounts: installed.mounts.filter(({ inside }) => !hides.test(inside)) }
      );
    },
    command(...args) {
      const command = openclaw.command(...args);
      const env = { ...command.run.env };
      environment(env);
      return { ...command, run: { ...command.run, env } };
    },
  };
}

const WAYS: Readonly<Record<string, HarnessAdapter>> = {
  as_installed: variant(/start-cache$|openclaw\/package\.json$/, (env) => {
    for (const name of [
      'NODE_DISABLE_COMPILE_CACHE',
      'OPENCLAW_DISABLE_BUNDLED_PLUGINS',
      'OPENCLAW_NO_RESPAWN',
      'OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED',
    ])
      delete env[name];
  }),
  slim: variant(/start-cache$/, () => undefined),
  default: openclaw,
};

const cpu: Record<string, number[]> = {};
const first: Record<string, number[]> = {};
try {
  await openclaw.warm!(provider);
  const mounts = (await openclaw.detect())?.mounts ?? [];
  const cached = mounts.some(({ host, inside }) => inside.endsWith('start-cache') && existsSync(host));
  if (!cached) throw new Error('OpenClaw or its start cache is missing; nothing timed');
  for (let round = 0; round < n; round++) {
    for (const [way, adapter] of Object.entries(WAYS)) {
      let started = 0;
      const { runs, calls } = await runScripted(adapter, provider, {
        tasks: [{ prompt: 'Say done.', maxTurns: 1 }],
        script: inOrder([say('Done.')]),
        before: async () => void (started = Date.now()),
      });
      if (runs[0]!.code !== 0 || calls.length !== 1)
        throw new Error(`${way}: ${runs[0]!.stderr.slice(-400)}`);
      (cpu[way] ??= []).push(runs[0]!.cpuSeconds);
      (first[way] ??= []).push((calls[0]!.start - started) / 1000);
      console.log(
        `${way.padEnd(14)} ${cpu[way].at(-1)!.toFixed(2)} CPU s, first call after ${first[way].at(-1)!.toFixed(2)} s`,
      );
    }
  }
} finally {
  await provider.close();
}

const median = (list: readonly number[]): number =>
  [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]!;
const rows = Object.keys(WAYS).flatMap((way): BenchRow[] => {
  const row = (name: string, unit: string, of: Record<string, number[]>): BenchRow => ({
    name: `openclaw/${name}/${way}`,
    value: median(of[way]!),
    unit,
    better: 'lower',
    against: 'as its package comes',
    ratio: median(of['as_installed']!) / median(of[way]!),
    n,
  });
  return [row('cpu_s', 'CPU s', cpu), row('first_call_s', 's', first)];
});
for (const { name, value, unit, ratio } of rows)
  console.log(`${name.padEnd(36)} ${value.toFixed(2).padStart(6)} ${unit}  ratio ${ratio!.toFixed(2)}`);
if (values.out) writeBenchRows(values.out, rows);
