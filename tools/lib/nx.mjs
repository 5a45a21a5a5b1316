import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Nx's entry file: started with node directly, so that no shell or npx stands in between. */
export const nxEntry = (root) => join(root, 'node_modules/nx/dist/bin/nx.js');

/** No daemon, no plugin processes (6 s become 2 s per run), plain output. */
export const nxEnvironment = (env = process.env) => ({
  NX_DAEMON: 'false',
  NX_ISOLATE_PLUGINS: 'false',
  NX_TUI: 'false',
  ...env,
});

/** The command that an `nx:run-commands` target of a package runs, read from its package.json. */
export function targetCommand(root, projectFolder, target) {
  const manifest = JSON.parse(readFileSync(join(root, projectFolder, 'package.json'), 'utf8'));
  const command = manifest.nx?.targets?.[target]?.options?.command ?? manifest.nx?.targets?.[target]?.command;
  if (typeof command !== 'string')
    throw new Error(`${projectFolder}/package.json has no nx target "${target}" with a command`);
  return command;
}
