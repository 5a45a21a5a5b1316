import { mkdirSync, readdirSync, renameSync, rmSync, existsSync } from 'node:fs';
import { join, dirname, basename } from 'node:path';
import { processIdentity } from './processes.mjs';

const PREFIX = '.work-';

/** Removes work folders whose maker is gone: what an interrupted installation left behind. */
export function sweepWorkFolders(parent) {
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const [pid, start] = name.slice(PREFIX.length).split('-');
    const identity = processIdentity(Number(pid));
    if (identity !== `${pid}:${start}`) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

/**
 * Builds a folder aside and moves it to `target` in one rename, so that `target` is whole or absent.
 * `fill` gets the work folder. Call it under a lock: whatever lies at `target` is replaced.
 */
export async function buildFolder(target, fill) {
  const parent = dirname(target);
  mkdirSync(parent, { recursive: true });
  sweepWorkFolders(parent);
  const identity = (processIdentity(process.pid) ?? `${process.pid}:0`).replace(':', '-');
  const work = join(parent, `${PREFIX}${identity}-${basename(target)}`);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  try {
    await fill(work);
    rmSync(target, { recursive: true, force: true });
    renameSync(work, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
