import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { toPlainError, TreewardError } from '@treeward/base';
import type { LoadedTasks, TaskProblem } from '../types.js';
import type { PlainImage } from './dockerfile.js';
import { filesBelow } from './files-below.js';
import { harborDirectories, loadHarbor, readHarborConfig } from './harbor.js';

export interface HarborImageOptions {
  /** Where the images' working directories are kept. */
  cache: string;
  /** The daemon's unix socket. @default what the `docker` command takes: $DOCKER_HOST, its context */
  socket?: string;
  /** Told what is built or pulled. */
  say?: (line: string) => void;
}

/** Tasks with their images at hand. */
export interface HarborInImages {
  loaded: LoadedTasks;
  /** Id of the image by id of the task. */
  images: Map<string, string>;
}

type DockerCommand = (...args: string[]) => Promise<string>;

/**
 * Harbor tasks in their own images: each is built from its `environment/Dockerfile`, or `docker_image` is pulled unless the daemon has
 * it; the image's working directory becomes the files of the task. A task whose image cannot be had is a problem (HARBOR_E_IMAGE).
 * @throws TreewardError HARBOR_E_DOCKER without a docker that answers; HARBOR_E_IMAGE when no image can be had; TASK_E_NONE
 */
export async function loadHarborInImages(root: string, options: HarborImageOptions): Promise<HarborInImages> {
  const directories = harborDirectories(root);
  const docker = await reachDocker(options.socket);
  const built = new Map<string, PlainImage & { id: string }>();
  const problems: TaskProblem[] = [];
  for (const directory of directories) {
    try {
      built.set(directory, await imageOf(directory, docker, options));
    } catch (error) {
      const { code, message } = toPlainError(error);
      problems.push({ file: directory, code, message });
    }
  }
  if (built.size === 0) {
    throw new TreewardError(
      'HARBOR_E_IMAGE',
      `${root}: no task's image can be had: ${problems[0]!.message}`,
      {
        data: { problems },
        hints: ['without --provider docker the tasks run on the files alone; what that leaves out is said'],
      },
    );
  }
  const loaded = loadHarbor(root, built);
  const tasks = loaded.tasks.filter(({ source }) => built.has(source));
  return {
    // What could not be read is said once: by its image, or by its files.
    loaded: {
      ...loaded,
      tasks,
      problems: [...problems, ...loaded.problems.filter(({ file }) => built.has(file))],
    },
    images: new Map(tasks.map(({ id, source }) => [id, built.get(source)!.id])),
  };
}

/** @throws TreewardError HARBOR_E_DOCKER */
async function reachDocker(socket: string | undefined): Promise<DockerCommand> {
  const run = promisify(execFile);
  const env = {
    ...process.env,
    ...(socket !== undefined && { DOCKER_HOST: `unix://${socket}` }),
    // The builder of every installation; the other one is a plugin that may not be there.
    DOCKER_BUILDKIT: '0',
  };
  const docker: DockerCommand = async (...args) =>
    (await run('docker', args, { env, maxBuffer: 64 * 1024 * 1024 })).stdout.trim();
  try {
    await docker('version', '--format', '{{.Server.Version}}');
  } catch (cause) {
    const absent = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const why = absent ? 'the docker command is not installed' : lastWords(cause);
    throw new TreewardError('HARBOR_E_DOCKER', `images of Harbor tasks need docker: ${why}`, {
      cause,
      hints: ['start a daemon and name it by DOCKER_HOST', 'leave out --provider docker'],
    });
  }
  return docker;
}

const lastWords = (error: unknown): string =>
  ((error as { stderr?: string }).stderr ?? (error as Error).message)
    .trim()
    .split('\n')
    .at(-1)!
    .slice(0, 400);

/** @throws TreewardError HARBOR_E_IMAGE, TASK_E_TOML */
async function imageOf(
  directory: string,
  docker: DockerCommand,
  { cache, say }: HarborImageOptions,
): Promise<PlainImage & { id: string }> {
  const published = readHarborConfig(directory).environment?.docker_image;
  const context = join(directory, 'environment');
  const fail = (what: string, cause?: unknown): TreewardError =>
    new TreewardError('HARBOR_E_IMAGE', `${directory}: ${what}${cause ? `: ${lastWords(cause)}` : ''}`, {
      cause,
      data: { file: directory, image: published ?? null },
    });
  let id: string;
  try {
    if (published) {
      const there = await docker('image', 'inspect', published).then(Boolean, () => false);
      if (!there) {
        say?.(`pulling ${published}`);
        await docker('pull', '--quiet', published);
      }
      id = await docker('image', 'inspect', '--format', '{{.Id}}', published);
    } else if (existsSync(join(context, 'Dockerfile'))) {
      say?.(`building ${context}`);
      id = (await docker('build', '--quiet', context)).split('\n').at(-1)!;
    } else throw fail('no environment/Dockerfile and no docker_image (compose files are not read)');
  } catch (error) {
    throw TreewardError.isInstance(error) ? error : fail(`its image ${published ?? ''} cannot be had`, error);
  }
  const workdir = (await docker('image', 'inspect', '--format', '{{.Config.WorkingDir}}', id)) || '/app';
  const key = createHash('sha256').update(`${id}\0${workdir}`).digest('hex').slice(0, 16);
  const files = join(cache, `${basename(directory)}-${key}`);
  if (!existsSync(files)) await copyOut(docker, id, workdir, files);
  return { id, workdir, files: filesBelow(files), unsupported: [] };
}

/** The image's working directory as it is before anybody has run in it; empty where it has none. */
async function copyOut(docker: DockerCommand, id: string, workdir: string, target: string): Promise<void> {
  const making = `${target}.${process.pid}`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(making, { recursive: true });
  const container = await docker('create', id, 'true');
  try {
    await docker('cp', `${container}:${workdir}/.`, making).catch((error: unknown) => {
      if (!/could not find the file|no such file/i.test(lastWords(error))) throw error;
    });
  } finally {
    await docker('rm', container);
  }
  renameSync(making, target);
}
