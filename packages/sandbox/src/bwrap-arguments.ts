import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { join, posix } from 'node:path';
import { TreewardError } from '@treeward/base';
import { scratchSizes } from './limits.js';
import { HOME, SANDBOX_UID, type OwnerFolder } from './owner.js';
import type { Mount, SandboxLimits } from './types.js';

export const WORKSPACE = '/workspace';
export const MODEL_PORT = 8080;
export const BASE_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME,
  TMPDIR: '/tmp',
  LANG: 'C.UTF-8',
  USER: 'sandbox',
};

const RESERVED = ['/', '/proc', '/dev', '/sys', '/etc', '/run', '/tmp', '/usr', '/bin', '/lib', WORKSPACE];
const RESERVED_BELOW = ['/proc', '/dev', '/sys', WORKSPACE];

/** Mounts with resolved sources, parents before children. @throws TreewardError SANDBOX_E_OPTIONS naming the mount */
export function checkMounts(mounts: readonly Mount[] = []): Mount[] {
  const checked = mounts.map(({ host, inside }) => {
    const bad = (why: string): TreewardError =>
      new TreewardError('SANDBOX_E_OPTIONS', `mount ${host} → ${inside}: ${why}`, {
        data: { field: 'mounts', file: host },
      });
    if (!posix.isAbsolute(inside) || posix.normalize(inside) !== inside || inside.endsWith('/')) {
      throw bad('the inside path must be absolute and plain');
    }
    if (RESERVED.includes(inside) || RESERVED_BELOW.some((path) => inside.startsWith(`${path}/`))) {
      throw bad('that place is taken');
    }
    try {
      return { host: realpathSync(host), inside };
    } catch {
      throw bad('the host path does not exist');
    }
  });
  return checked.sort((a, b) => a.inside.length - b.inside.length);
}

export interface BwrapRequest {
  bwrap: string;
  folder: OwnerFolder;
  /** The sandbox's mount directory, as launch.c lays it out. */
  directory: string;
  limits: SandboxLimits;
  mounts: readonly Mount[];
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
    ...['--uid', String(SANDBOX_UID), '--gid', String(SANDBOX_UID), '--hostname', 'sandbox'],
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
