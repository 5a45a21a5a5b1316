import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BootError } from './errors.mjs';
import { processIdentity } from './processes.mjs';

const here = () => ({ identity: processIdentity(process.pid), pid: process.pid, host: hostname() });

/** `link` is the one call that both creates the lock and fails if it exists, with its content already inside. */
function tryTake(file) {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const content = JSON.stringify(here());
  writeFileSync(temporary, content);
  try {
    linkSync(temporary, file);
    return content;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return undefined;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function readOwner(file) {
  try {
    const text = readFileSync(file, 'utf8');
    return { text, ...JSON.parse(text) };
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    return { text: '', identity: 'unreadable', host: hostname() };
  }
}

/** A lock is stale when its owner ran on this machine and is gone. Of another machine nothing can be said. */
const isStale = (owner) =>
  owner.host === hostname() && (owner.pid === undefined || processIdentity(owner.pid) !== owner.identity);

/** Moves a stale lock aside. Two waiters may race here: whoever moved a live lock by mistake puts it back. */
function clearStale(file, owner) {
  const aside = `${file}.stale.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    renameSync(file, aside);
    if (readFileSync(aside, 'utf8') !== owner.text) linkSync(aside, file);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * Runs `work` while holding the lock file. Waits for a live owner (telling `log` once whom for), takes over
 * from a dead one. Throws `BOOT_E_LOCKED` after `timeoutMs`.
 */
export async function withLock(file, work, { log = () => {}, timeoutMs = 30 * 60_000, pollMs = 200 } = {}) {
  mkdirSync(dirname(file), { recursive: true });
  const deadline = Date.now() + timeoutMs;
  let told = false;
  let mine;
  while ((mine = tryTake(file)) === undefined) {
    const owner = readOwner(file);
    if (owner === undefined) continue;
    if (isStale(owner)) {
      log(`taking over the lock of a process that is gone (pid ${owner.pid ?? '?'})`);
      clearStale(file, owner);
      continue;
    }
    if (Date.now() > deadline) {
      throw new BootError('BOOT_E_LOCKED', `${file} is held by pid ${owner.pid} on ${owner.host}`, {
        hints: ['wait until that installation is done', `or, if no such process runs, delete ${file}`],
      });
    }
    if (!told) log(`waiting for another installation (pid ${owner.pid} on ${owner.host})`);
    told = true;
    await sleep(pollMs);
  }
  const release = () => {
    if (readOwner(file)?.text === mine) rmSync(file, { force: true });
  };
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.removeListener('exit', release);
    release();
  }
}
