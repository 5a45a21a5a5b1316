import { fork } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { learnerEntry, spawnLearner } from './spawn-learner.js';
import { constantRows, packRows, tinyCheckpoint, tinyRows } from './testing/batches.js';
import { TfjsLearner } from './tfjs-learner.js';

// These run the built entry (dist): the nx target of the tests depends on `build`.

const folder = (): string => mkdtempSync(join(tmpdir(), 'treeward-spawn-'));

describe('the learner as a process', () => {
  it('does what the learner in this process does, bit for bit, and keeps no files', async () => {
    const dir = folder();
    const scratch = join(dir, 'scratch');
    const { learner, child } = await spawnLearner(
      join(dir, 's.sock'),
      { checkpoint: tinyCheckpoint },
      { scratch },
    );
    const here = await TfjsLearner.open({ checkpoint: tinyCheckpoint });
    const batch = packRows(
      tinyRows,
      constantRows(tinyRows, (row) => row + 1),
    );
    expect(await learner.capabilities()).toEqual(await here.capabilities());
    const step = { lr: 1e-2, maxGradNorm: 1 };
    const remote = await learner.update(batch, { kind: 'sft' }, step);
    const local = await here.update(batch, { kind: 'sft' }, step);
    expect(remote['loss/sft']).toBe(local['loss/sft']);
    expect(await learner.score(batch)).toEqual(await here.score(batch));
    await learner.save(join(dir, 'a'));
    await here.save(join(dir, 'b'));
    for (const name of ['model.safetensors', 'optimizer.safetensors', 'state.json']) {
      expect(readFileSync(join(dir, 'a', name)).equals(readFileSync(join(dir, 'b', name))), name).toBe(true);
    }
    expect(readdirSync(scratch)).toEqual([]);
    await expect(learner.load(join(dir, 'nothing'))).rejects.toMatchObject({ code: 'LEARNER_E_CHECKPOINT' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await learner.close();
    expect(await ended).toBe(0);
  });

  it('says why it could not start', async () => {
    const dir = folder();
    await expect(
      spawnLearner(join(dir, 's.sock'), { checkpoint: join(dir, 'none') }, { scratch: dir }),
    ).rejects.toMatchObject({ code: 'FILE_E_MISSING' });
  });

  it('ends when its parent lets go of it', async () => {
    const child = fork(
      learnerEntry,
      [join(folder(), 's.sock'), JSON.stringify({ checkpoint: tinyCheckpoint })],
      { execArgv: [] },
    );
    await new Promise((resolve) => child.once('message', resolve));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.disconnect();
    expect(await ended).toBe(0);
  });
});
