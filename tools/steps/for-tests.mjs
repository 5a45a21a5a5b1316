import { onPath } from '../lib/paths.mjs';
import { aptInstall } from './system-packages.mjs';

/** What the tests of the docker provider start or look for. Their daemon is their own; none is set up on the machine. */
export const docker = (context) =>
  installed(context, {
    id: 'docker',
    title: 'docker for tests',
    commands: { dockerd: 'docker.io', mmdebstrap: 'mmdebstrap', runsc: 'runsc' },
    without: 'no tests of containers',
  });

/** Opens the reports that people look at; any other browser will do as well (TREEWARD_BROWSER names one elsewhere). */
export const browser = (context) =>
  installed(context, {
    id: 'browser',
    title: 'browser for tests',
    commands: { 'chromium-headless-shell': 'chromium-headless-shell' },
    instead: ['chromium', 'chromium-browser', 'google-chrome', 'chrome'],
    without: 'reports are not looked at in a browser',
  });

/** Installs what is missing where that is possible; elsewhere the tests that want it are skipped, which they say. */
function installed(context, { id, title, commands, instead = [], without }) {
  const { env, uid = process.getuid?.() } = context;
  return {
    id,
    needs: ['system-packages'],
    title,
    async run() {
      if (instead.some((command) => onPath(command, env) !== undefined)) return { status: 'ready' };
      const missing = Object.keys(commands).filter((command) => onPath(command, env) === undefined);
      if (missing.length === 0) return { status: 'ready' };
      const names = missing.map((command) => commands[command]);
      const skipped = (why) => ({ status: 'skipped', detail: `${without}: ${why}` });
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
