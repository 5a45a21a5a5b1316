import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { TreewardError } from '@treeward/base';
import { methodOf } from './algo-config.js';
import { loadConfig } from './config.js';

function file(toml: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'config-')), 'a.toml');
  writeFileSync(path, toml);
  return path;
}

function failure(work: () => unknown): TreewardError {
  try {
    work();
  } catch (error) {
    if (TreewardError.isInstance(error)) return error;
  }
  throw new Error('nothing was thrown');
}

describe('loadConfig', () => {
  it('lays defaults under files under overrides, and replaces maps whole', () => {
    const below = file('[run]\nsteps = 3\nseed = 9\n[rollouts]\ngroups = { openclaw = 4 }');
    const above = file('[run]\nsteps = 5\n[rollouts]\ngroups = { agent-loop = 1 }');
    const config = loadConfig([below, above], ['rollouts.group-size=7', 'run.name=x']);
    expect(config.run).toMatchObject({ steps: 5, seed: 9, name: 'x' });
    expect(config.rollouts).toMatchObject({ groups: { 'agent-loop': 1 }, group_size: 7, max_turns: 6 });
  });

  it.each([
    ['[run]\nstep = 3', 'CONFIG_E_KEY', 'run.step'],
    ['[optimiser]\nlr = 1', 'CONFIG_E_KEY', 'optimiser'],
    ['[algo]\ntype = "rloo"\nstd_epsilon = 1', 'CONFIG_E_KEY', 'algo.std_epsilon'],
    ['[algo]\ntype = "reinforce"', 'CONFIG_E_VALUE', 'algo.type'],
    // A method by name fixes everything that defines it.
    ['[algo]\ntype = "clawgym2"\nclip_low = 0.1', 'CONFIG_E_KEY', 'algo.clip_low'],
    ['[sampling]\ntemperature = -1', 'CONFIG_E_VALUE', 'sampling.temperature'],
    ['[sandbox]\nprovider = "podman"', 'CONFIG_E_VALUE', 'sandbox.provider'],
    ['[sandbox]\nprovider = "bubblewrap"\nimage = "x"', 'CONFIG_E_KEY', 'sandbox.image'],
    ['[sandbox]\nprovider = "docker"\n[rollouts]\ntrace = true', 'CONFIG_E_VALUE', 'rollouts.trace'],
    ['[run]\nsteps = "many"', 'CONFIG_E_VALUE', 'run.steps'],
  ])('refuses %j and names the field', (toml, code, field) => {
    const path = file(toml);
    const error = failure(() => loadConfig([path]));
    expect([error.code, error.data['field']]).toEqual([code, field]);
    expect(error.message).toContain(path);
    expect(error.message).toContain(field);
  });

  it('names a file that is missing or not TOML, and an override without a value', () => {
    expect(failure(() => loadConfig(['/nowhere.toml'])).code).toBe('CONFIG_E_FILE');
    expect(failure(() => loadConfig([file('= 1')])).code).toBe('CONFIG_E_TOML');
    expect(failure(() => loadConfig([], ['run.steps'])).code).toBe('CONFIG_E_OVERRIDE');
  });

  it('names algorithms and methods, and refuses pairs that bias', () => {
    const algo = (toml: string): ReturnType<typeof methodOf> =>
      methodOf(loadConfig([file(`[algo]\n${toml}`)]).algo);
    expect(algo('type = "ppo"').algorithm).toMatchObject({ critic: 'history', order: 'lineage', lambda: 1 });
    expect(algo('type = "gspo"').algorithm).toMatchObject({ type: 'gspo', clipLow: 3e-4, epochs: 1 });
    expect(algo('type = "clawgym2"')).toMatchObject({ calls: 'clawgym2', algorithm: { type: 'grpo' } });
    expect(algo('type = "rloo"\nbaseline = "workspace-score"').algorithm).toMatchObject({
      type: 'rloo',
      baseline: 'workspace-score',
    });
    expect(failure(() => algo('type = "grpo"\nbaseline = "workspace-score"')).code).toBe('CONFIG_E_KEY');
    expect(algo('type = "treeward"').algorithm).toEqual(algo('type = "rloo"').algorithm);
    expect(failure(() => algo('type = "ppo"\nlambda = 0.9\norder = "chain"')).code).toBe(
      'LEARNER_E_ALGORITHM',
    );
  });

  it.each(['mixed.toml', 'smoke.toml'])('accepts configs/%s', (name) => {
    const path = fileURLToPath(new URL(`../configs/${name}`, import.meta.url));
    expect(loadConfig([path]).run.name).toBe(name.replace('.toml', ''));
  });
});
