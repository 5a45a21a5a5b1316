import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { TreewardError } from '@treeward/base';

/** A new directory with these files in it. */
export function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'eval-test-'));
  for (const [path, content] of Object.entries(files)) {
    const full = join(directory, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
  }
  return directory;
}

/** The code of what is thrown; a test that expects an error fails when there is none. */
export function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return TreewardError.isInstance(error) ? error.code : `not ours: ${String(error)}`;
  }
  return 'nothing was thrown';
}

export async function codeOfAsync(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
  } catch (error) {
    return TreewardError.isInstance(error) ? error.code : `not ours: ${String(error)}`;
  }
  return 'nothing was thrown';
}

const FENCE = '```';

/** A PinchBench task file; every part can be replaced. */
export function taskFile(
  parts: { meta?: string; sections?: Record<string, string>; checks?: string } = {},
): string {
  const checks = parts.checks ?? 'def grade(transcript, workspace_path):\n    return {"done": 1.0}';
  const sections: Record<string, string> = {
    Prompt: 'Do it.',
    'Expected Behavior': 'It is done.',
    'Grading Criteria': '- [ ] done\n- [x] well',
    'Automated Checks': `${FENCE}python\n${checks}\n${FENCE}`,
    ...parts.sections,
  };
  const body = Object.entries(sections).map(([name, text]) => `## ${name}\n\n${text}\n`);
  return `---\nid: task_a\nname: A\ncategory: basic\ngrading_type: automated\ntimeout_seconds: 60\n${parts.meta ?? ''}---\n\n${body.join('\n')}`;
}

/** A ClawGym RL directory's files, below `prefix`. */
export const clawgymFiles = (
  prefix: string,
  options: {
    id?: string;
    query?: string;
    check?: string;
    entry?: string;
    metadata?: Record<string, unknown>;
    inputs?: Record<string, string>;
  } = {},
): Record<string, string> => ({
  [`${prefix}data_entry.json`]: JSON.stringify({
    task_id: options.id ?? 'task_0',
    user_query: options.query ?? 'Write out.txt.',
    metadata: { category: '', grading_type: 'automated', ...options.metadata },
  }),
  [`${prefix}reward/reward.sh`]: options.entry ?? 'exec python3 -B "${0%/*}/check.py" "$PWD"\n',
  [`${prefix}reward/check.py`]: options.check ?? 'print("{\\"x\\": 0}")\nprint(0)\n',
  ...Object.fromEntries(
    Object.entries(options.inputs ?? {}).map(([path, text]) => [`${prefix}input_files/${path}`, text]),
  ),
});

/** ClawGym's own entry script. */
export const REFERENCE_ENTRY = `#!/usr/bin/env bash
set -euo pipefail

python3 /root/.openclaw/workspace/reward/check.py /root/.openclaw/workspace | python3 -c 'import json, sys; raw = sys.stdin.read().strip(); data = json.loads(raw); print(sum(float(v) for v in data.values()) / len(data) if isinstance(data, dict) and data else float(data) if isinstance(data, (int, float)) else 0.0)'
`;
