import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'end-with-parent-'));
afterAll(() => rmSync(folder, { recursive: true }));

const built = JSON.stringify(new URL('../dist/end-with-parent.js', import.meta.url).href);

/** A child that says when it is up, before or after it asks to end with its parent. */
function child(when: 'before' | 'after'): ChildProcess {
  const entry = join(folder, `${when}.mjs`);
  const ask = `const { endWithParent } = await import(${built}); endWithParent(() => process.exit(7));`;
  // Standing for imports that take long: the channel may close in that time.
  const up = `process.send('up'); await new Promise((resolve) => setTimeout(resolve, 200));`;
  writeFileSync(
    entry,
    `setInterval(() => undefined, 1000); ${when === 'before' ? ask + up : up + ask} process.send?.('asked');`,
  );
  return fork(entry, [], { execArgv: [] });
}

describe('endWithParent', () => {
  it.each(['before', 'after'] as const)('ends a child whose parent went %s it asked', async (went) => {
    const process = child(went === 'before' ? 'after' : 'before');
    const code = new Promise((resolve) => process.once('exit', resolve));
    await new Promise((resolve) => process.once('message', resolve));
    process.disconnect();
    expect(await code).toBe(7);
  });
});
