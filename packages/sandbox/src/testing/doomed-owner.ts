import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Runs as its own process, from the built package: an owner that can be killed. */
const program = (provider: string, sandboxes: number): string => `
const { BubblewrapProvider, DockerProvider } = await import(process.argv[1]);
const provider = ${provider};
const all = await Promise.all(Array.from({ length: ${sandboxes} }, (_, i) => provider.open({ id: 's' + i, network: { kind: 'none' }, mounts: [{ host: '/usr/share', inside: '/opt/share' }] })));
await Promise.all(all.map((s) => s.run(['/bin/sh', '-c', '(setsid sleep 54545 >/dev/null 2>&1 &) ; echo x > f'])));
console.log('alive');
process.stdin.on('end', () => process.exit()).resume(); // never outlives a failed test
`;

/** An owner of sandboxes that is going to be killed with kill -9. */
export class DoomedOwner {
  readonly #child: ChildProcess;

  /** @param provider an expression; both provider classes are in scope */
  constructor(provider: string, sandboxes: number) {
    const built = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
    if (!existsSync(built)) throw new Error(`${built}: build the package first`);
    this.#child = spawn(
      process.execPath,
      ['--input-type=module', '-e', program(provider, sandboxes), built],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
  }

  /** Waits until all its sandboxes run. `folder`: its name below the provider's root. */
  async alive(root: string): Promise<{ folder: string }> {
    const ended = once(this.#child, 'exit').then(([code]) => {
      throw new Error(`the owner ended with ${code} before its sandboxes ran`);
    });
    await Promise.race([once(this.#child.stdout!, 'data'), ended]);
    ended.catch(() => undefined); // its end is what it is for
    const folder = readdirSync(root).find((name) => name.startsWith(`${this.#child.pid}-`));
    if (folder === undefined) throw new Error(`no folder of process ${this.#child.pid} in ${root}`);
    return { folder };
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}
