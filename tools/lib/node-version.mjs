import { BootError } from './errors.mjs';

/** Whether `version` ("20.20.2") meets one of `ranges`, each `^a.b.c` (same major) or `>=a.b.c`. */
export function meets(version, ranges) {
  const numbers = (text) => text.split('.').map(Number);
  const have = numbers(version);
  return ranges.some((range) => {
    const want = numbers(range.replace(/^(\^|>=)/, ''));
    if (range.startsWith('^') && have[0] !== want[0]) return false;
    for (let i = 0; i < 3; i++) if (have[i] !== want[i]) return have[i] > want[i];
    return true;
  });
}

/** Throws `BOOT_E_NODE_VERSION` when this node is too old or of an unsupported odd line. */
export function checkNode(ranges, version = process.versions.node) {
  if (meets(version, ranges)) return;
  throw new BootError(
    'BOOT_E_NODE_VERSION',
    `Node ${version} does not do: ${ranges.join(' or ')} is needed`,
    {
      hints: ['install Node 24 (or 20.19 and later) and run the same command again'],
    },
  );
}
