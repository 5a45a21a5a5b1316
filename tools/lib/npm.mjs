import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * npm hands its own settings down as `npm_*` variables: those of this checkout (engine-strict, ignore-scripts,
 * the workspace) must not reach installs elsewhere. What says how to reach the registry stays.
 */
const KEPT =
  /^npm_config_(registry|@.*|\/\/.*|cache|userconfig|globalconfig|.*proxy|noproxy|cafile|ca|cert|key|strict_ssl|offline|prefer_offline|fetch_.*|maxsockets)$/i;

/** The environment for an npm that installs something: cleaned, and giving up on a dead network within a minute. */
export function npmEnvironment(env = process.env, extra = {}) {
  const clean = {};
  for (const [name, value] of Object.entries(env)) {
    if (!/^npm_/i.test(name) || KEPT.test(name)) clean[name] = value;
  }
  return {
    npm_config_fetch_retries: '3',
    npm_config_fetch_retry_mintimeout: '1000',
    npm_config_fetch_retry_maxtimeout: '8000',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    ...clean,
    ...extra,
  };
}

/** How to start npm: the one that runs us, else the one beside this node, else the one on PATH. */
export function npmCommand(env = process.env) {
  const running = env.npm_execpath;
  if (running !== undefined && /^np[mx]-cli\.js$/.test(basename(running))) {
    const cli = join(dirname(running), 'npm-cli.js');
    if (existsSync(cli)) return [process.execPath, cli];
  }
  const beside = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js');
  return existsSync(beside) ? [process.execPath, beside] : ['npm'];
}

/**
 * Whether `folder/node_modules` already holds what `lockFile` asks for. npm writes `node_modules/.package-lock.json`
 * last, so its entries are what is really there; optional packages of other platforms may be absent.
 */
export function isInstalled(folder, lockFile) {
  const hidden = join(folder, 'node_modules/.package-lock.json');
  if (!existsSync(hidden) || !existsSync(lockFile)) return false;
  const wanted = JSON.parse(readFileSync(lockFile, 'utf8')).packages;
  const present = JSON.parse(readFileSync(hidden, 'utf8')).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    if (!path.includes('node_modules/')) continue;
    const have = present[path];
    if (have === undefined) {
      if (entry.optional || entry.peer) continue;
      return false;
    }
    if (have.version !== entry.version || have.integrity !== entry.integrity) return false;
    if (!existsSync(join(folder, path))) return false;
  }
  return true;
}
