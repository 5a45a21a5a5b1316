// Preloaded into a CLI: answers which file a specifier means with what Node itself found when this map was made, instead of
// asking the file system again for each of its imports (OpenClaw has some 8,000). `?record=DIR` makes a part of the map, `?map=FILE` uses one.
import { readFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const options = new URL(import.meta.url).searchParams;
const record = options.get('record');
/** By importing file, then by `i` (import) or `r` (require) and specifier: url and format. */
const known = record === null ? JSON.parse(readFileSync(options.get('map'), 'utf8')) : {};

const keyOf = (specifier, { conditions }) => (conditions.includes('require') ? 'r' : 'i') + specifier;

registerHooks({
  resolve(specifier, context, next) {
    const key = keyOf(specifier, context);
    const found = known[context.parentURL]?.[key];
    if (found && record === null) return { url: found[0], format: found[1], shortCircuit: true };
    const resolved = next(specifier, context);
    // Only what is certain by name: JSON and files whose kind Node tells by their text are left to it.
    if (record !== null && context.parentURL && /^file:.*\.[cm]?js$/.test(resolved.url)) {
      const { url, format } = resolved;
      if (format === 'module' || format === 'commonjs')
        (known[context.parentURL] ??= {})[key] = [url, format];
    }
    return resolved;
  },
});

if (record !== null && isMainThread)
  process.on('exit', () => writeFileSync(`${record}/${process.pid}.json`, JSON.stringify(known)));
