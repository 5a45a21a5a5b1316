import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunResult, Sandbox, SandboxProvider } from '../types.js';
import { ATTEMPTS, type Attempt } from './escape-attempts.js';
import { EscapeContext } from './escape-context.js';

interface Evidence {
  area: string;
  attempt: string;
  command: string;
  exit: string;
  /** The attacker's view, shortened. */
  saw: string;
  refused: boolean;
  harm: string[];
}

const RESULTS = join(import.meta.dirname, '../../../../test-results');

/**
 * Every attempt of escape-attempts.ts, one after another in sandboxes like a rollout's, beside another rollout. Each must
 * have run, been refused as expected, and left the host as it was. What was seen goes to test-results/escapes-NAME.json.
 */
export function escapeSuite(name: string, makeProvider: () => SandboxProvider): void {
  describe(`${name}: ${ATTEMPTS.length} attempts to escape`, () => {
    const evidence: Evidence[] = [];
    let context: EscapeContext;
    let provider: SandboxProvider;
    let sandbox: Sandbox | null = null;

    beforeAll(async () => {
      provider = makeProvider();
      context = new EscapeContext(provider);
      await context.open();
    }, 120_000);
    afterAll(async () => {
      await sandbox?.destroy();
      await context.close();
      mkdirSync(RESULTS, { recursive: true });
      writeFileSync(
        join(RESULTS, `escapes-${name}.json`),
        JSON.stringify({ provider: name, evidence }, null, 2) + '\n',
      );
      console.info(table(name, evidence));
    });

    it.each(ATTEMPTS.map((attempt, index) => ({ ...attempt, index })))(
      '$area: $name',
      { timeout: 120_000 },
      async (attempt) => {
        // One after another in the same sandbox, as a task would; afresh where its workspace is what is looked at.
        if (attempt.then) await sandbox?.destroy().then(() => (sandbox = null));
        sandbox ??= await provider.open(context.attackerOptions(`attacker-${attempt.index}`));
        const argv = attempt.sh ? ['/bin/sh', '-c', attempt.sh] : ['/usr/bin/python3', '-c', attempt.python!];
        const { timeout = 20_000 } = attempt;
        const result = await sandbox.run(argv, { env: context.env, timeout, maxOutput: 20_000 });
        const collected = await collect(attempt, sandbox, context);
        const seen = describeRun(result) + collected;
        const harm = await context.harm();
        const refused = !seen.includes('BREACH') && attempt.sees.test(seen) && harm.length === 0;
        evidence.push({
          area: attempt.area,
          attempt: attempt.name,
          command: attempt.sh ?? attempt.python!.trim(),
          exit: exitOf(result),
          saw: seen.replace(/\s+/g, ' ').slice(0, 300),
          refused,
          harm,
        });
        expect(harm).toEqual([]);
        expect(seen).not.toContain('BREACH');
        expect(seen).toMatch(attempt.sees);
        if (attempt.then || attempt.area === 'resources')
          await sandbox.destroy().then(() => (sandbox = null));
      },
    );

    it('made at least 25 attempts, all of them refused', () => {
      expect(evidence.length).toBe(ATTEMPTS.length);
      expect(evidence.length).toBeGreaterThanOrEqual(25);
      expect(evidence.filter(({ refused }) => !refused)).toEqual([]);
    });
  });
}

const exitOf = ({ code, signal, timedOut }: RunResult): string =>
  timedOut ? 'timed out' : String(signal ?? code);

const describeRun = (result: RunResult): string =>
  [
    result.stdout.slice(-4000),
    result.stderr.slice(-4000),
    exitOf(result),
    result.truncated ? 'truncated' : '',
  ].join('\n');

/** The host's own part, which an attacker would abuse; BREACH where it was led astray. */
async function collect(attempt: Attempt, sandbox: Sandbox, context: EscapeContext): Promise<string> {
  if (attempt.then === 'read') {
    const read = await sandbox.read('loot').then(
      (bytes) => Buffer.from(bytes).toString(),
      (error: Error) => error.message,
    );
    return read.includes('host secret') ? 'BREACH' : read;
  }
  if (attempt.then === 'write') {
    await sandbox.write('loot', 'overwritten');
    return readFileSync(context.secret, 'utf8') === 'host secret' ? '' : 'BREACH';
  }
  if (attempt.then !== 'export') return '';
  for (let i = 0; i < 10; i++) {
    const target = mkdtempSync(join(context.folder, 'collected-'));
    await sandbox.exportWorkspace(target);
    if (contents(target).some((text) => text.includes('host secret'))) return 'BREACH';
    for (const { path } of await sandbox.changes()) if (path.includes('secret')) return 'BREACH';
  }
  return 'collected 10 times';
}

/** Of regular files only, as a collector that follows no links. */
function contents(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    const stat = lstatSync(path);
    if (stat.isDirectory()) return contents(path);
    return stat.isFile() ? [readFileSync(path, 'utf8')] : [];
  });
}

function table(name: string, evidence: readonly Evidence[]): string {
  const line = ({ area, attempt, exit, refused, saw }: Evidence): string =>
    `${refused ? 'refused' : 'FAILED '}  ${area.padEnd(22)} ${attempt.padEnd(58)} ${exit.padEnd(9)} ${saw.slice(0, 70)}`;
  const refused = evidence.filter((entry) => entry.refused).length;
  return [`escape attempts on ${name}: ${refused} of ${evidence.length} refused`, ...evidence.map(line)].join(
    '\n',
  );
}
