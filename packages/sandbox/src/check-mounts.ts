import { realpathSync } from 'node:fs';
import { posix } from 'node:path';
import { TreewardError } from '@treeward/base';
import { WORKSPACE } from './bwrap-arguments.js';
import type { Cover, Mount } from './types.js';

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

/** Covers with resolved sources. @throws TreewardError SANDBOX_E_OPTIONS naming the cover */
export function checkCovers(covers: readonly Cover[] = []): Cover[] {
  return covers.map(({ host, path }) => {
    const bad = (why: string): TreewardError =>
      new TreewardError('SANDBOX_E_OPTIONS', `cover ${host} → ${path}: ${why}`, {
        data: { field: 'covers', file: host },
      });
    const plain = posix.normalize(path) === path && !posix.isAbsolute(path) && !path.endsWith('/');
    if (!plain || path === '.' || path.startsWith('..'))
      throw bad('the path must be relative to the workspace and plain');
    try {
      return { host: realpathSync(host), path };
    } catch {
      throw bad('the host directory does not exist');
    }
  });
}
