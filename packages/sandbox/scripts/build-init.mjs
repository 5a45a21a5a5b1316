// Builds dist/treeward-init from src/init/*.c. Skips when sources, flags and compiler are those of the last build.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const source = join(root, 'src/init');
const out = join(root, 'dist/treeward-init');
const stamp = `${out}.json`;
const compiler = process.env.CC ?? 'gcc';
const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-fstack-protector-strong'];

const sha256 = (...parts) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
const files = readdirSync(source)
  .filter((name) => /\.[ch]$/.test(name))
  .sort()
  .map((name) => join(source, name));

let version;
try {
  version = execFileSync(compiler, ['-dumpfullversion', '-dumpmachine'], { encoding: 'utf8' });
} catch {
  console.error(`build-init: no C compiler (${compiler}). Install gcc and libc6-dev, or set CC.`);
  process.exit(1);
}
const inputs = sha256(
  version,
  flags.join(' '),
  ...files.flatMap((file) => [file.slice(root.length), readFileSync(file)]),
);

const upToDate = () => {
  try {
    const last = JSON.parse(readFileSync(stamp, 'utf8'));
    return last.inputs === inputs && last.sha256 === sha256(readFileSync(out));
  } catch {
    return false;
  }
};
if (upToDate()) process.exit(0);

mkdirSync(join(root, 'dist'), { recursive: true });
const temporary = `${out}.${process.pid}.tmp`;
const build = (link) =>
  spawnSync(compiler, [...flags, ...link, '-o', temporary, ...files.filter((file) => file.endsWith('.c'))], {
    encoding: 'utf8',
  });
let linkage = 'static';
let result = build(['-static']);
if (result.status !== 0) {
  // Without libc.a the binary still runs inside, where /usr is that of the host.
  linkage = 'dynamic';
  const first = result.stderr;
  result = build([]);
  if (result.status !== 0) {
    console.error(first + result.stderr);
    process.exit(1);
  }
}
renameSync(temporary, out);
writeFileSync(stamp, JSON.stringify({ inputs, sha256: sha256(readFileSync(out)), linkage }, null, 2) + '\n');
console.log(`build-init: ${linkage} ${out}`);
