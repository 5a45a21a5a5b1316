#!/usr/bin/env node
// A committed file, so that npm can link it before anything is built.
import { existsSync } from 'node:fs';
const cli = new URL('../dist/cli.js', import.meta.url);
if (!existsSync(cli)) {
  process.stderr.write('treeward is not built yet\n  → node tools/bootstrap.mjs setup\n');
  process.exit(1);
}
await import(cli.href);
