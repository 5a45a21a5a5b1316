import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTask, SandboxGrader } from '@treeward/rollout';
import { buildImage, daemonUnavailable, startDaemon, type Daemon } from '@treeward/sandbox';
import { ImageProvider } from '../run/image-provider.js';
import { rolloutName } from '../run/names.js';
import { codeOfAsync, folderOf } from '../testing/tasks.js';
import { loadHarborInImages } from './harbor-images.js';
import { materialise } from './materialise.js';

// A daemon takes half a minute to start and to import an image: only the full run has it.
const unavailable =
  process.env['TREEWARD_TEST_FULL'] === '1' ? daemonUnavailable() : 'half a minute: TREEWARD_TEST_FULL=1';
if (unavailable) console.warn(`skipped: Harbor tasks in their own images: ${unavailable}`);

/** A task that can be solved only in its image: the Dockerfile makes what the test asks for. */
const task = (name: string, from: string): Record<string, string> => ({
  [`${name}/task.toml`]: 'version = "1.0"\n',
  [`${name}/instruction.md`]: 'Copy /app/in.txt to /app/out.txt.\n',
  [`${name}/environment/Dockerfile`]: `FROM ${from}\nWORKDIR /app\nCOPY in.txt .\nCOPY tool /opt/tool\n`,
  [`${name}/environment/in.txt`]: 'wanted\n',
  [`${name}/environment/tool`]: 'of the image\n',
  [`${name}/tests/test.sh`]:
    'cmp /app/in.txt /app/out.txt && cmp /opt/tool /tests/tool && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n',
  [`${name}/tests/tool`]: 'of the image\n',
});

describe.skipIf(unavailable !== null)('Harbor tasks in their own images, on a daemon of its own', () => {
  let daemon: Daemon;
  let image: string;
  beforeAll(async () => {
    daemon = await startDaemon();
    image = await buildImage({ socket: daemon.socket, say: (text) => console.info(text) });
  }, 400_000);
  afterAll(() => daemon?.stop());

  it('is built, its working directory is the workspace, and the tests see what else is in it; no image is a problem', async () => {
    const root = folderOf({ ...task('good', image), ...task('gone', 'treeward.invalid/none:1') });
    const cache = folderOf({});
    const { loaded, images } = await loadHarborInImages(root, { cache, socket: daemon.socket });
    expect(loaded.problems).toMatchObject([{ code: 'HARBOR_E_IMAGE', file: join(root, 'gone') }]);
    expect(loaded.tasks).toMatchObject([
      { id: 'good', query: 'Copy /workspace/in.txt to /workspace/out.txt.', files: [{ path: 'in.txt' }] },
    ]);
    const written = materialise(loaded.tasks[0]!, join(cache, 'task'));
    const sandboxes = new ImageProvider(images, { socket: daemon.socket });
    const id = rolloutName('good', 0);
    const agent = await sandboxes.open({
      id,
      workspaceFrom: join(written.directory, 'input_files'),
      network: { kind: 'none' },
    });
    expect(agent.image).toBe(images.get('good'));
    const left = folderOf({});
    try {
      const { stdout } = await agent.run([
        '/bin/sh',
        '-c',
        'cp in.txt out.txt && cat /opt/tool && ls /tests 2>&1',
      ]);
      expect(stdout).toMatch(/^of the image\n.*No such file/);
      rmSync(left, { recursive: true });
      await agent.exportWorkspace(left);
    } finally {
      await agent.destroy();
    }
    const grader = new SandboxGrader(sandboxes);
    const grade = (workspace: string) => grader.grade(loadTask(written.directory), workspace, {}, { id });
    expect((await grade(left)).reward).toBe(1);
    expect((await grade(join(written.directory, 'input_files'))).reward).toBe(0);
    await sandboxes.sweep();
  });

  it('when no task has one, it is an error', async () => {
    const root = folderOf(task('gone', 'treeward.invalid/none:1'));
    const options = { cache: folderOf({}), socket: daemon.socket };
    expect(await codeOfAsync(() => loadHarborInImages(root, options))).toBe('HARBOR_E_IMAGE');
  });
});
