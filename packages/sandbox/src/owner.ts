import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, lstatSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { TreewardError, writeJsonAtomic } from '@treeward/base';
import { agentBinary } from './agent-binary.js';
import { processStart } from './processes.js';
import { seccompProgram } from './seccomp.js';
import type { SandboxUser } from './types.js';

/** The uids that tasks and graders run under inside, and as root also outside. */
export const UIDS: Readonly<Record<SandboxUser, number>> = { task: 20001, grader: 20002 };
export const HOME = '/tmp/home';

/** `PID-START-RANDOM`. */
export const OWNER_NAME = /^(\d+)-(\d+)-[0-9a-f]{8}$/;

export interface OwnerLease {
  pid: number;
  start: string;
  run: string;
  created: string;
}

export interface SandboxLease {
  id: string;
  pid: number | null;
  start: string | null;
  created: string;
  /** Uptime in milliseconds (see `uptimeMs`) after which the sweeper ends it even if its owner lives. */
  expires: number;
}

/**
 * One provider's folder on the host:
 * `owner.json` (lease), `agent`, `seccomp.bpf`, `etc/`, `lower/` (task copies), `sb/ID/` (mount points, empty when seen
 * from the host) and `sb/ID.json` (leases).
 */
export interface OwnerFolder {
  /** `PID-START-RANDOM`: also the prefix of its cgroups, so that these alone tell whether their owner lives. */
  name: string;
  path: string;
  agent: string;
  seccomp: string;
  lower: string;
}

/** @param kind one folder per kind of provider: they sweep differently */
export function defaultRoot(kind: 'sandbox' | 'docker'): string {
  if (process.getuid?.() === 0) return `/run/treeward/${kind}`;
  const base = process.env['XDG_RUNTIME_DIR'] ?? join(tmpdir(), `treeward-${process.getuid?.() ?? 0}`);
  return join(base, `treeward-${kind}`);
}

/** @throws TreewardError SANDBOX_E_OPTIONS (root directory), SANDBOX_E_AGENT */
export function createOwnerFolder(root: string, run: string): OwnerFolder {
  const start = processStart(process.pid) ?? '0';
  const name = `${process.pid}-${start}-${randomBytes(4).toString('hex')}`;
  const path = join(prepareRoot(root), name);
  mkdirSync(path, { mode: 0o711 });
  chmodSync(path, 0o711);
  const lease: OwnerLease = { pid: process.pid, start, run, created: new Date().toISOString() };
  writeJsonAtomic(join(path, 'owner.json'), lease);
  const folder: OwnerFolder = {
    name,
    path,
    agent: join(path, 'agent'),
    seccomp: join(path, 'seccomp.bpf'),
    lower: join(path, 'lower'),
  };
  mkdirSync(folder.lower, { mode: 0o711 });
  mkdirSync(join(path, 'sb'), { mode: 0o711 });
  if (process.arch === 'x64') writeFileSync(folder.seccomp, seccompProgram()); // elsewhere only `unsafe` gets here
  copyFileSync(agentBinary(), folder.agent); // a copy: the checkout may be out of the sandbox uid's reach
  chmodSync(folder.agent, 0o555);
  writeEtc(join(path, 'etc'));
  return folder;
}

export const sandboxDirectory = (folder: OwnerFolder, id: string): string => join(folder.path, 'sb', id);
export const leasePath = (folder: OwnerFolder, id: string): string => join(folder.path, 'sb', `${id}.json`);

export function writeLease(folder: OwnerFolder, lease: SandboxLease): void {
  writeFileSync(leasePath(folder, lease.id), JSON.stringify(lease));
}

export function removeLease(folder: OwnerFolder, id: string): void {
  rmSync(leasePath(folder, id), { force: true });
}

function prepareRoot(given: string): string {
  const root = resolve(given);
  const bad = (why: string, hint: string): TreewardError =>
    new TreewardError('SANDBOX_E_OPTIONS', `sandbox root ${root} ${why}`, {
      hints: [hint],
      data: { field: 'root' },
    });
  // These separate the parts of overlayfs' mount options.
  if (/[,:\\]/.test(root)) throw bad('has a comma, colon or backslash in it', 'choose another directory');
  mkdirSync(root, { recursive: true, mode: 0o711 });
  const stat = lstatSync(root);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) {
    throw bad('is not a directory of ours', 'remove it or choose another');
  }
  if (process.getuid?.() === 0) {
    for (let path = root; path !== '/'; path = dirname(path)) {
      if (!(statSync(path).mode & 0o001)) {
        throw bad(
          `is out of reach for uid ${UIDS.task}: ${path} lacks x for others`,
          'use a directory under /run',
        );
      }
    }
  }
  return root;
}

function writeEtc(directory: string): void {
  const files = {
    passwd: `root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:${UIDS.task}:${UIDS.task}::${HOME}:/bin/bash\ngrader:x:${UIDS.grader}:${UIDS.grader}::${HOME}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n`,
    group: `root:x:0:\nsandbox:x:${UIDS.task}:\ngrader:x:${UIDS.grader}:\nnogroup:x:65534:\n`,
    hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
    'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
  };
  mkdirSync(directory, { mode: 0o755 });
  chmodSync(directory, 0o755);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text);
    chmodSync(join(directory, name), 0o644);
  }
}
