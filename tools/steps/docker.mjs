import { onPath } from '../lib/paths.mjs';
import { aptInstall } from './system-packages.mjs';

/** What the tests of the docker provider start or look for. Their daemon is their own; none is set up on the machine. */
const COMMANDS = { dockerd: 'docker.io', mmdebstrap: 'mmdebstrap', runsc: 'runsc' };

/** Installs what is missing where that is possible; elsewhere these tests are skipped, which they say. */
export function docker(context) {
  const { env, uid = process.getuid?.() } = context;
  return {
    id: 'docker',
    needs: ['system-packages'],
    title: 'docker for tests',
    async run() {
      const missing = Object.keys(COMMANDS).filter((command) => onPath(command, env) === undefined);
      if (missing.length === 0) return { status: 'ready' };
      const names = missing.map((command) => COMMANDS[command]);
      const skipped = (why) => ({ status: 'skipped', detail: `no tests of containers: ${why}` });
      if (uid !== 0 || onPath('apt-get', env) === undefined) {
        return skipped(`root has to apt-get install --no-install-recommends ${names.join(' ')}`);
      }
      try {
        await aptInstall(context, names);
      } catch (error) {
        return skipped(error.message);
      }
      return { status: 'done', detail: names.join(', ') };
    },
  };
}
