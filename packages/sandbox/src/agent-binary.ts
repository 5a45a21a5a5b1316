import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { TreewardError } from '@treeward/base';

let checked: string | null = null;

/**
 * Path of the built agent, checked once against the hash that its build wrote down.
 * @throws TreewardError SANDBOX_E_AGENT when it was not built or is not what was built
 */
export function agentBinary(): string {
  if (checked) return checked;
  const path = fileURLToPath(new URL('../dist/treeward-init', import.meta.url));
  const hints = ['npx nx run sandbox:build-init', 'node packages/sandbox/scripts/build-init.mjs'];
  const bad = (why: string, cause?: unknown): TreewardError =>
    new TreewardError('SANDBOX_E_AGENT', `sandbox agent ${path} ${why}`, {
      cause,
      hints,
      data: { file: path },
    });
  let bytes: Buffer;
  let stamp: { sha256: string };
  try {
    bytes = readFileSync(path);
    stamp = JSON.parse(readFileSync(`${path}.json`, 'utf8')) as { sha256: string };
  } catch (cause) {
    throw bad('is not built', cause);
  }
  if (createHash('sha256').update(bytes).digest('hex') !== stamp.sha256) throw bad('is not what was built');
  checked = path;
  return path;
}
