import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

/** sha256 over names and contents of `files` (a missing file counts as missing) and over `extra` values. */
export function hashFiles(base, files, extra = []) {
  const hash = createHash('sha256');
  for (const file of files) {
    const path = join(base, file);
    hash.update(`\0${file}\0`);
    hash.update(existsSync(path) ? readFileSync(path) : '\0missing');
  }
  for (const value of extra) hash.update(`\0${String(value)}`);
  return hash.digest('hex');
}

/** All files under `folder`, sorted, as paths relative to `base`; folders for which `skip(name)` holds are left out. */
export function listFiles(base, folder, skip = () => false) {
  const found = [];
  const visit = (current) => {
    for (const entry of readdirSync(current, { withFileTypes: true })) {
      if (entry.isDirectory()) {
        if (!skip(entry.name)) visit(join(current, entry.name));
      } else if (entry.isFile()) found.push(relative(base, join(current, entry.name)).split(sep).join('/'));
    }
  };
  if (existsSync(join(base, folder))) visit(join(base, folder));
  return found.sort();
}

/** The stamp's content, or undefined when it is missing or not JSON (half-written by another tool, say). */
export function readStamp(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Writes through a temporary file and a rename, so that a stamp is either whole or absent. */
export function writeStamp(file, content) {
  mkdirSync(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(temporary, `${JSON.stringify(content, null, 2)}\n`);
  renameSync(temporary, file);
}

/** Takes a stamp away before work on what it vouches for begins. */
export function dropStamp(file) {
  rmSync(file, { force: true });
}
