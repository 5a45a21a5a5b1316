#!/usr/bin/env node
// `npx treeward …`: the same as `node tools/bootstrap.mjs treeward …`, so that the command works in a fresh clone.
process.argv.splice(2, 0, 'treeward');
await import('./bootstrap.mjs');
