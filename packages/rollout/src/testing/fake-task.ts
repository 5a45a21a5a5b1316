import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The smallest task directory there is: no inputs, a checker that prints `verdict`, or these files in `reward/`. */
export function writeFakeTask(
  verdict = '1',
  reward: Readonly<Record<string, string>> = { 'reward.sh': `echo ${verdict}\n` },
): string {
  const directory = mkdtempSync(join(tmpdir(), 'fake-task-'));
  writeFileSync(
    join(directory, 'data_entry.json'),
    JSON.stringify({ task_id: 'fake', user_query: 'Do it.' }),
  );
  mkdirSync(join(directory, 'reward'));
  for (const [name, content] of Object.entries(reward))
    writeFileSync(join(directory, 'reward', name), content);
  return directory;
}
