import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applySteps } from '../apply-steps.js';
import { runReward, type Graded } from '../testing/grade.js';
import { DOMAINS, type Step } from '../types.js';
import { setTaskFiles, setTasks, writeSetTask } from './write-set.js';

const committed = fileURLToPath(new URL('../../sets', import.meta.url));
const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(directory, path)).isFile())
    .sort();

describe.each(['base', 'hard'] as const)('set %s', (level) => {
  const tasks = setTasks(level);
  let root: string;
  beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'treeward-set-'))));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('is what lies in datasets/sets, byte for byte, and nothing else lies there', () => {
    expect(readdirSync(join(committed, level)).sort()).toEqual(
      [...tasks.map(({ id }) => id), 'index.json'].sort(),
    );
    for (const task of tasks) {
      const files = setTaskFiles(task);
      expect(filesBelow(join(committed, level, task.id)), task.id).toEqual(Object.keys(files).sort());
      for (const [path, text] of Object.entries(files))
        expect(readFileSync(join(committed, level, task.id, path), 'utf8'), `${task.id}/${path}`).toBe(text);
    }
  });

  it('covers the six domains', () => {
    expect(new Set(tasks.map(({ domain }) => domain))).toEqual(new Set(Object.keys(DOMAINS)));
  });

  // What a checker does with rubbish does not hang on the seed.
  const first = new Set(
    tasks.filter((task, i) => tasks.findIndex(({ family }) => family === task.family) === i),
  );

  describe.each(tasks)('$id', (task) => {
    let directory: string;
    const workspace = (name: string): string => {
      const path = join(directory, name);
      mkdirSync(path);
      if (existsSync(join(directory, 'task', 'input_files')))
        cpSync(join(directory, 'task', 'input_files'), path, { recursive: true });
      return path;
    };
    const grade = async (name: string, steps: readonly Step[]): Promise<Graded> => {
      const path = workspace(name);
      applySteps(path, steps);
      return runReward(join(directory, 'task', 'reward'), path);
    };
    beforeAll(() => {
      directory = join(root, task.id);
      writeSetTask(task, join(directory, 'task'));
    });

    it('gives the reference 1, the untouched workspace 0 in every sub-score, wrong plans less than 1', async () => {
      const reference = await grade('reference', task.reference.steps);
      expect(reference.reward, JSON.stringify(reference.scores)).toBe(1);
      const untouched = await grade('untouched', []);
      expect(
        Object.values(untouched.scores).every((score) => score === 0),
        JSON.stringify(untouched.scores),
      ).toBe(true);
      expect(Object.keys(untouched.scores).length).toBeGreaterThanOrEqual(4);
      for (const [name, plan] of Object.entries(task.wrong)) {
        const wrong = await grade(`wrong-${name}`, plan.steps);
        expect(wrong.reward, name).toBeLessThan(1);
        expect(Object.keys(wrong.scores)).toEqual(Object.keys(reference.scores));
      }
    });

    it.runIf(first.has(task))(
      'grades rubbish without raising: folders, binary and huge files where it looks, and nothing at all',
      async () => {
        const outputs = task.reference.steps.flatMap((step) => (step.verb === 'write' ? [step.path] : []));
        const rubbish: [string, (path: string) => void][] = [
          ['folder', (path) => mkdirSync(path, { recursive: true })],
          ['binary', (path) => writeFileSync(path, Buffer.from([0xff, 0xfe, 0, 1, 0xc3, 0x28]))],
          ['huge', (path) => writeFileSync(path, 'x'.repeat(1_500_000))],
          ['nested', (path) => writeFileSync(path, '['.repeat(100_000))],
          ['wrong-type', (path) => writeFileSync(path, '[null, {"a": [1, "b"]}, true]')],
        ];
        const keys = Object.keys((await grade('plain', [])).scores);
        for (const [name, put] of rubbish) {
          const path = workspace(`rubbish-${name}`);
          for (const output of outputs) {
            rmSync(join(path, output), { recursive: true, force: true });
            mkdirSync(join(path, output, '..'), { recursive: true });
            put(join(path, output));
          }
          const { scores, reward } = await runReward(join(directory, 'task', 'reward'), path);
          expect(Object.keys(scores), name).toEqual(keys);
          expect(reward, name).toBeLessThan(1);
        }
        const empty = join(directory, 'empty');
        mkdirSync(empty);
        expect((await runReward(join(directory, 'task', 'reward'), empty)).reward).toBeLessThan(1);
      },
    );
  });
});
