import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { TreewardError } from '@treeward/base';
import { collectTasks } from '../formats/collect.js';
import type { LoadedTasks } from '../types.js';
import { readManifest, type Manifest } from './suites.js';
import { loadPinchbenchTask } from './task-file.js';

export interface LoadedPinchbench extends LoadedTasks {
  manifest: Manifest | null;
}

/**
 * A checkout of the benchmark (with `tasks/` and `assets/`), or its `tasks/` folder. In the manifest's order where there is one;
 * its categories win over those in the files. A task without its file, or the other way round, is a problem.
 * @throws TreewardError TASK_E_NONE, TASK_E_MANIFEST
 */
export function loadPinchbench(root: string, options: { strict?: boolean } = {}): LoadedPinchbench {
  const directory = resolve(root);
  const folder = existsSync(join(directory, 'tasks')) ? join(directory, 'tasks') : directory;
  const names = existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => /^task_.*\.md$/.test(name))
        .sort()
    : [];
  if (names.length === 0) {
    throw new TreewardError('TASK_E_NONE', `${folder}: no task_*.md`, {
      data: { file: folder },
      hints: ['name a checkout of the benchmark, or its tasks folder'],
    });
  }
  const home = dirname(folder);
  const assets =
    [join(folder, 'assets'), join(home, 'assets')].find((path) => existsSync(path)) ?? join(home, 'assets');
  const manifest = readManifest([folder, home]);
  const { tasks, problems } = collectTasks(
    names.map((name) => join(folder, name)),
    (file) => loadPinchbenchTask(file, { assets, ...(options.strict && { strict: true }) }),
  );
  if (manifest) {
    const ids = new Set(names.map((name) => name.replace(/\.md$/, '')));
    for (const task of tasks) task.category = manifest.categories.get(task.id) ?? task.category;
    for (const id of manifest.order) {
      const file = join(folder, `${id}.md`);
      if (!ids.has(id))
        problems.push({ file, code: 'TASK_E_FILE', message: `${file} is in the manifest and missing` });
    }
    const place = new Map(manifest.order.map((id, at) => [id, at]));
    tasks.sort(
      (a, b) => (place.get(a.id) ?? Infinity) - (place.get(b.id) ?? Infinity) || (a.id < b.id ? -1 : 1),
    );
  }
  return {
    tasks,
    problems,
    manifest,
    set: { name: 'pinchbench', version: versionOf(home), licence: licenceOf(home) },
  };
}

/** The checkout's version: its `VERSION` file, else the commit its HEAD names. */
function versionOf(home: string): string | null {
  const version = join(home, 'VERSION');
  if (existsSync(version)) return readFileSync(version, 'utf8').trim();
  const head = join(home, '.git/HEAD');
  if (!existsSync(head)) return null;
  const text = readFileSync(head, 'utf8').trim();
  const ref = /^ref: (.+)$/.exec(text)?.[1];
  if (ref === undefined) return text.slice(0, 12);
  const file = join(home, '.git', ref);
  return existsSync(file) ? readFileSync(file, 'utf8').trim().slice(0, 12) : basename(ref);
}

function licenceOf(home: string): string | null {
  const file = ['LICENSE', 'LICENSE.md', 'LICENCE']
    .map((name) => join(home, name))
    .find((path) => existsSync(path));
  return file === undefined
    ? null
    : (readFileSync(file, 'utf8')
        .split('\n')
        .find((line) => line.trim() !== '')
        ?.trim() ?? null);
}
