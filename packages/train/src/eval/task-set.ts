import { join, resolve } from 'node:path';
import { TreewardError } from '@treeward/base';
import {
  ImageProvider,
  loadHarborInImages,
  loadHub,
  loadTasks,
  selectSuite,
  type FormatName,
  type LoadedPinchbench,
  type LoadedTasks,
} from '@treeward/eval';
import type { SandboxProvider } from '@treeward/sandbox';
import { numberFlag } from '../cli/number-flag.js';
import { parseProvider, providerFlag } from '../cli/provider-flag.js';

export interface SetFlags {
  tasks?: string;
  hub?: string;
  hubUrl?: string;
  out: string;
  suite: string;
  core?: boolean;
  strict?: boolean;
  tolerance: string;
  provider: string;
  /** PinchBench only. */
  failFast?: boolean;
}

export interface TaskSet {
  loaded: LoadedTasks;
  complete: boolean;
  note: string | null;
  /** Ids of images by task, when tasks run in their own. */
  images: Map<string, string> | null;
  /** Tasks without which no other is run. */
  sanity: readonly string[];
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** The tasks that the flags name. @throws TreewardError CLI_E_TASKS, TASK_E_*, HUB_E_*, HARBOR_E_* */
export async function loadSet(format: FormatName, flags: SetFlags): Promise<TaskSet> {
  if ((flags.tasks === undefined) === (flags.hub === undefined)) {
    throw new TreewardError('CLI_E_TASKS', 'exactly one of --tasks and --hub is needed');
  }
  const hub =
    flags.hub === undefined
      ? null
      : await loadHub(flags.hub, { ...(flags.hubUrl !== undefined && { url: flags.hubUrl }), say });
  const path = flags.tasks ?? hub!.path;
  // A Harbor task in docker has its own image; otherwise what is on this machine, and its files.
  const inImages =
    format === 'harbor' && parseProvider(flags.provider).provider === 'docker'
      ? await loadHarborInImages(path, { cache: join(resolve(flags.out), 'images'), say })
      : null;
  const files = inImages
    ? null
    : loadTasks(format, path, {
        ...(flags.strict && { strict: true }),
        tolerance: numberFlag('--tolerance', flags.tolerance, { min: 0, max: 1 }),
      });
  const loaded: LoadedTasks = inImages?.loaded ?? files!;
  const manifest = files && 'manifest' in files ? (files as LoadedPinchbench).manifest : null;
  const { tasks, complete, note } = selectSuite(loaded.tasks, flags.core ? 'core' : flags.suite, manifest);
  return {
    loaded: {
      ...loaded,
      tasks,
      ...(hub && { set: { name: hub.name, version: hub.revision, licence: hub.licence } }),
    },
    complete,
    note,
    images: inImages?.images ?? null,
    sanity: flags.failFast ? (manifest?.runFirst ?? []) : [],
  };
}

/** @throws TreewardError CLI_E_PROVIDER, SANDBOX_E_TIER */
export async function sandboxesOf(
  provider: string,
  images: Map<string, string> | null,
): Promise<SandboxProvider> {
  const { runtime } = parseProvider(provider);
  return images ? new ImageProvider(images, { ...(runtime && { runtime }) }) : providerFlag(provider);
}
