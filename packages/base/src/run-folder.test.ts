import { describe, expect, it } from 'vitest';
import { RunFolder } from './run-folder.js';

describe('RunFolder', () => {
  it('knows where things lie', () => {
    const run = new RunFolder('/runs/a');
    expect(run.batch(12)).toBe('/runs/a/batches/000012.json');
    expect(run.checkpoint(10)).toBe('/runs/a/checkpoints/step_000010');
    expect(run.rollout('r1').telemetry).toBe('/runs/a/rollouts/r1/telemetry.ndjson');
    expect(run.rollout('r1').tree).toBe('/runs/a/rollouts/r1/tree.bin');
  });
});
