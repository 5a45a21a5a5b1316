import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { loadPinchbench, type LoadedPinchbench } from '../pinchbench/load.js';
import type { FormatName, LoadedTasks } from '../types.js';
import { loadClawgymDirectories } from './clawgym-directory.js';
import { loadClawgymRows } from './clawgym-rows.js';
import { loadHarbor } from './harbor.js';
import { loadJobbench } from './jobbench.js';
import { loadOfficeqa } from './officeqa.js';

export interface LoadOptions {
  /** PinchBench: cut sections where the original does. @default false */
  strict?: boolean;
  /** OfficeQA: relative tolerance of numbers. @default 0 */
  tolerance?: number;
}

/** Tasks of a folder or file in a named format. @throws TreewardError TASK_E_* when there is none to read */
export function loadTasks(
  format: FormatName,
  path: string,
  options: LoadOptions = {},
): LoadedTasks | LoadedPinchbench {
  switch (format) {
    case 'clawgym':
      return withLicence(
        /^\.(jsonl|ndjson)$/.test(extname(path)) ? loadClawgymRows(path) : loadClawgymDirectories(path),
        path,
      );
    case 'pinchbench':
      return loadPinchbench(path, options.strict ? { strict: true } : {});
    case 'jobbench':
      return withLicence(loadJobbench(path), path);
    case 'officeqa':
      return loadOfficeqa(path, options.tolerance === undefined ? {} : { tolerance: options.tolerance });
    case 'harbor':
      return withLicence(loadHarbor(path), path);
  }
}

/** Which format a folder or file is in, by what lies in it; `clawgym` when nothing says otherwise. */
export function detectFormat(path: string): FormatName {
  const has = (...names: string[]): boolean => names.some((name) => existsSync(join(path, name)));
  if (has('manifest.yaml', 'tasks/manifest.yaml')) return 'pinchbench';
  const first = (load: () => LoadedTasks): boolean => {
    try {
      return load().tasks.length > 0;
    } catch {
      return false; // not in this format
    }
  };
  if (extname(path) === '.csv') return 'officeqa';
  if (extname(path) === '.jsonl' || has('data_entry.json')) return 'clawgym';
  if (first(() => loadPinchbench(path))) return 'pinchbench';
  if (first(() => loadHarbor(path))) return 'harbor';
  if (first(() => loadJobbench(path))) return 'jobbench';
  return 'clawgym';
}

function withLicence(loaded: LoadedTasks, path: string): LoadedTasks {
  const file = ['LICENSE', 'LICENSE.md', 'LICENCE']
    .map((name) => join(path, name))
    .find((name) => existsSync(name));
  if (file === undefined) return loaded;
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((text) => text.trim() !== '');
  return { ...loaded, set: { ...loaded.set, licence: line?.trim() ?? null } };
}
