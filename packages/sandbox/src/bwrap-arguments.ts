import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { scratchSizes } from './limits.js';
import { HOME, type OwnerFolder } from './owner.js';
import type { Cover, Mount, SandboxLimits } from './types.js';

export const WORKSPACE = '/workspace';
export const MODEL_PORT = 8080;
export const BASE_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME,
  TMPDIR: '/tmp',
  LANG: 'C.UTF-8',
  USER: 'sandbox',
};

export interface BwrapRequest {
  bwrap: string;
  folder: OwnerFolder;
  /** The sandbox's mount directory, as launch.c lays it out. */
  directory: string;
  limits: SandboxLimits;
  mounts: readonly Mount[];
  /** Shown below the workspace, over directories that its lower layer has. */
  covers: readonly Cover[];
  uid: number;
  /** Where the model socket's directory is readable for bwrap. */
  modelDirectory: string | null;
  /** Limits for tiers without cgroups. */
  rlimits: boolean;
}

/** The command after launch's `--`. Descriptor 3 holds the seccomp program. */
export function bwrapCommand(request: BwrapRequest): string[] {
  const { folder, directory, limits } = request;
  const sizes = scratchSizes(limits);
  const etc = (name: string): string[] => ['--ro-bind', join(folder.path, 'etc', name), `/etc/${name}`];
  const optional = (path: string): string[] => (existsSync(path) ? ['--ro-bind', path, path] : []);
  const scratch = (path: string, bytes: number): string[] => ['--size', String(bytes), '--tmpfs', path];
  return [
    request.bwrap,
    ...[
      '--unshare-all',
      '--unshare-user',
      '--disable-userns',
      '--die-with-parent',
      '--new-session',
      '--as-pid-1',
    ],
    ...['--uid', String(request.uid), '--gid', String(request.uid), '--hostname', 'sandbox'],
    // bwrap makes parents 0700; tools look at these.
    ...['/etc', '/opt', '/run', '/var'].flatMap((path) => ['--perms', '0755', '--dir', path]),
    ...['--ro-bind', '/usr', '/usr'],
    ...['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'].flatMap(topDirectory),
    ...optional('/etc/alternatives'),
    ...optional('/etc/ld.so.cache'),
    ...optional('/etc/ssl/certs'),
    ...['passwd', 'group', 'hosts', 'nsswitch.conf'].flatMap(etc),
    ...scratch('/tmp', sizes.tmp),
    ...['--perms', '0700', '--dir', HOME, '--symlink', '/tmp', '/var/tmp'],
    ...['--proc', '/proc', '--dev', '/dev', ...scratch('/dev/shm', sizes.shm), '--remount-ro', '/dev'],
    ...['--ro-bind', folder.agent, '/run/treeward/init'],
    ...(request.modelDirectory ? ['--ro-bind', request.modelDirectory, '/run/model'] : []),
    ...request.mounts.flatMap(({ host, inside }) => ['--ro-bind', host, inside]),
    ...['--bind', join(directory, 'm'), WORKSPACE, '--chdir', WORKSPACE],
    ...request.covers.flatMap(({ host, path }) => ['--ro-bind', host, `${WORKSPACE}/${path}`]),
    // The root is bwrap's own tmpfs without a size: writable it would be a disk without a limit.
    ...['--remount-ro', '/'],
    '--clearenv',
    ...Object.entries(BASE_ENV).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--seccomp', '3', '--', '/run/treeward/init', 'agent'],
    ...(request.modelDirectory ? ['--port', String(MODEL_PORT), '--model', '/run/model/model.sock'] : []),
    ...(request.rlimits ? ['--data', String(limits.memory), '--nproc', String(limits.pids)] : []),
  ];
}

/** /bin and its like: links into /usr on merged systems, directories on others. */
function topDirectory(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return [];
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}
