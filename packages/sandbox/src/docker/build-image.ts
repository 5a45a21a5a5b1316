import { spawn } from 'node:child_process';
import { createReadStream, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { TreewardError } from '@treeward/base';
import { dockerClient } from './client.js';
import { DEFAULT_IMAGE, IMAGE_RECIPE } from './image-recipe.js';

export interface BuildImageOptions {
  /** The daemon's unix socket. */
  socket: string;
  /** Where the root file system is kept, so that another daemon does not build it again. @default $TREEWARD_CACHE/images */
  cache?: string;
  say?: (text: string) => void;
}

/**
 * The default image, if the daemon has none: mmdebstrap makes a root file system of Debian packages (a minute, 280 MB),
 * the daemon imports it. @returns the image's id @throws TreewardError SANDBOX_E_IMAGE
 */
export async function buildImage(options: BuildImageOptions): Promise<string> {
  const docker = dockerClient(options.socket);
  const image = docker.getImage(DEFAULT_IMAGE);
  try {
    return (await image.inspect()).Id;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode !== 404) throw error;
  }
  const tar = await rootFileSystem(options);
  const [repo, tag] = DEFAULT_IMAGE.split(':') as [string, string];
  options.say?.(`importing ${tar} as ${DEFAULT_IMAGE}`);
  const progress = await docker.importImage(createReadStream(tar) as unknown as string, { repo, tag });
  await new Promise<void>((resolve, reject) =>
    docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve())),
  );
  return (await image.inspect()).Id;
}

async function rootFileSystem({ cache = defaultCache(), say }: BuildImageOptions): Promise<string> {
  const tar = join(cache, `${DEFAULT_IMAGE.replace(/[/:]/g, '-')}.tar`);
  if (existsSync(tar)) return tar;
  mkdirSync(cache, { recursive: true });
  const making = `${tar}.${process.pid}.tar`;
  const { suite, variant, packages } = IMAGE_RECIPE;
  say?.(`mmdebstrap ${suite}: ${packages.join(', ')}`);
  try {
    await mmdebstrap([
      ...[
        `--variant=${variant}`,
        `--include=${packages.join(',')}`,
        '--aptopt=Apt::Install-Recommends "false"',
      ],
      ...['--dpkgopt=path-exclude=/usr/share/doc/*', '--dpkgopt=path-exclude=/usr/share/locale/*'],
      ...[suite, making],
    ]);
    renameSync(making, tar);
  } finally {
    rmSync(making, { force: true });
  }
  return tar;
}

function mmdebstrap(args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('mmdebstrap', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-4000)));
    const failed = (why: string, cause?: unknown): void =>
      reject(
        new TreewardError('SANDBOX_E_IMAGE', `no root file system could be made: ${why}`, {
          cause,
          hints: ['apt-get install mmdebstrap', 'a Debian mirror must be reachable'],
        }),
      );
    child.once('error', (error) => failed(error.message, error));
    child.once('close', (code) =>
      code === 0 ? resolve() : failed(stderr.trim().split('\n').slice(-3).join(' ')),
    );
  });
}

function defaultCache(): string {
  const { TREEWARD_CACHE, XDG_CACHE_HOME } = process.env;
  return join(TREEWARD_CACHE ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'treeward'), 'images');
}
