import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { TreewardError } from '@treeward/base';
import type { EvalTask, LoadedTasks } from '../types.js';
import { collectTasks } from './collect.js';
import { readDockerfile, type PlainImage } from './dockerfile.js';
import { filesBelow } from './files-below.js';
import { readText } from './read-text.js';
import { rewriteFile, rewritePaths, WORKSPACE, type Rewrite } from './workspace-paths.js';

const config = z.looseObject({
  schema_version: z.string().nullish(),
  version: z.string().nullish(),
  task: z.looseObject({ name: z.string().nullish() }).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  agent: z.looseObject({ timeout_sec: z.number().gt(0).nullish() }).nullish(),
  verifier: z
    .looseObject({
      timeout_sec: z.number().gt(0).nullish(),
      env: z.record(z.string(), z.coerce.string()).nullish(),
    })
    .nullish(),
  environment: z
    .looseObject({ docker_image: z.string().nullish(), allow_internet: z.boolean().nullish() })
    .nullish(),
});

/** Where the verifier's `/logs` and `/tests` are in a sandbox whose root cannot be written. */
const PLACES: readonly Rewrite[] = [
  [/(?<![\w./-])\/logs(?=\/|\b)/g, '/tmp/logs'],
  [/(?<![\w./-])\/tests(?=\/|\b)/g, '/workspace/reward/tests'],
];

/** Runs tests/test.sh and reads `reward.txt`, else the mean of `reward.json`'s numbers; without either, no number. */
const entry = (environment: Readonly<Record<string, string>>): string => `#!/bin/sh
mkdir -p /tmp/logs/verifier /tmp/logs/agent /tmp/logs/artifacts
${Object.entries(environment)
  .map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`)
  .join('')}cp "\${OPENCLAW_REWARD_PAYLOAD:-/dev/null}" /tmp/logs/agent/payload.json
/bin/bash reward/tests/test.sh >&2
code=$?
exec python3 -B - "$code" <<'END'
import json, math, os, sys
text = "/tmp/logs/verifier/reward.txt"
table = "/tmp/logs/verifier/reward.json"
if os.path.exists(text):
    scores = {"reward": float(open(text).read().strip())}
elif os.path.exists(table):
    scores = {str(k): float(v) for k, v in json.load(open(table)).items() if isinstance(v, (bool, int, float))}
else:
    sys.exit("tests/test.sh (code %s) wrote neither reward.txt nor reward.json" % sys.argv[1])
if not scores or not all(math.isfinite(v) for v in scores.values()):
    sys.exit("the reward is not a finite number: %r" % scores)
print(json.dumps(scores))
print(sum(scores.values()) / len(scores))
END
`;

/** @throws TreewardError TASK_E_FILE, TASK_E_TOML */
export function readHarborConfig(directory: string): z.infer<typeof config> {
  const file = join(directory, 'task.toml');
  let value: unknown;
  try {
    value = parse(readText(file));
  } catch (cause) {
    if (TreewardError.isInstance(cause)) throw cause;
    throw new TreewardError('TASK_E_TOML', `${file}: ${(cause as Error).message.split('\n')[0]}`, {
      cause,
      data: { file },
    });
  }
  const parsed = config.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new TreewardError('TASK_E_TOML', `${file}: field ${issue.path.join('.')}: ${issue.message}`, {
      data: { file, field: issue.path.join('.') },
    });
  }
  return parsed.data;
}

/** What can be had of a task's image without building it. */
function plainImage(directory: string, name: string | null | undefined): PlainImage {
  const context = join(directory, 'environment');
  const docker = join(context, 'Dockerfile');
  if (existsSync(docker)) return readDockerfile(readText(docker), context);
  return { workdir: '/app', files: [], unsupported: name ? [`image ${name}`] : [] };
}

/**
 * Reads a Harbor (Terminal-Bench 2) task: instruction.md, task.toml, environment/, tests/. Its image's working directory becomes the
 * workspace; what the image needs beyond local files is a warning, unless the `image` is there (harbor-images.ts).
 * @throws TreewardError TASK_E_FILE, TASK_E_TOML, TASK_E_PATH
 */
export function loadHarborTask(directory: string, built?: PlainImage): EvalTask {
  const { task, metadata, agent, verifier, environment } = readHarborConfig(directory);
  const image = built ?? plainImage(directory, environment?.docker_image);
  const workdir: Rewrite = [
    new RegExp(
      `(?<![\\w./-])${image.workdir.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?=[/\\s"'\`:;,)]|\\.?$|\\.\\s)`,
      'gm',
    ),
    WORKSPACE,
  ];
  const instruction = rewritePaths(readText(join(directory, 'instruction.md')), [workdir]);
  const tests = join(directory, 'tests');
  if (!existsSync(join(tests, 'test.sh'))) {
    throw new TreewardError('TASK_E_FILE', `${directory}: tests/test.sh is missing`, {
      data: { file: join(tests, 'test.sh') },
    });
  }
  const category = metadata?.['category'];
  return {
    id: basename(directory),
    name: task?.name ?? basename(directory),
    format: 'harbor',
    category: typeof category === 'string' ? category : '',
    query: instruction.text.trim(),
    sessions: null,
    timeoutSeconds: agent?.timeout_sec ?? 600,
    files: image.files.map((each) => rewriteFile(each, [workdir]).file),
    grading: {
      type: 'automated',
      weights: { automated: 1, judge: 0 },
      reward: [
        { path: 'reward.sh', content: entry(verifier?.env ?? {}) },
        ...filesBelow(tests, 'tests/').map((each) => rewriteFile(each, [workdir, ...PLACES]).file),
      ],
      rubric: null,
      expectedBehavior: '',
      answer: null,
      timeoutMs: (verifier?.timeout_sec ?? 600) * 1000,
    },
    live: environment?.allow_internet === true && /https?:\/\//.test(instruction.text),
    quarantined: null,
    metadata: { ...metadata, harbor: { workdir: image.workdir, unsupported: image.unsupported } },
    mcp: null,
    source: directory,
    warnings: [
      ...(instruction.changed ? [`the instruction says ${image.workdir}; here it says /workspace`] : []),
      ...image.unsupported.map((line) => `the image's "${line}" is not carried out`),
    ],
  };
}

/** Task directories: the folder itself, or those in it. @throws TreewardError TASK_E_NONE */
export function harborDirectories(root: string): string[] {
  const directory = resolve(root);
  const is = (path: string): boolean => existsSync(join(path, 'task.toml'));
  const found = !existsSync(directory)
    ? []
    : is(directory)
      ? [directory]
      : readdirSync(directory)
          .sort()
          .map((name) => join(directory, name))
          .filter((path) => statSync(path).isDirectory() && is(path));
  if (found.length === 0) {
    throw new TreewardError('TASK_E_NONE', `${directory}: no folder with task.toml`, {
      data: { file: directory },
    });
  }
  return found;
}

/** `images`: what was built of the tasks, by their directory. @throws TreewardError TASK_E_NONE */
export function loadHarbor(root: string, images: ReadonlyMap<string, PlainImage> = new Map()): LoadedTasks {
  return {
    ...collectTasks(harborDirectories(root), (path) => loadHarborTask(path, images.get(path))),
    set: { name: basename(resolve(root)), version: null, licence: null },
  };
}
