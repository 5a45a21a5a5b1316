import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { TreewardError } from '@treeward/base';
import { describeTree, recoverDirectory, treeToJson } from '@treeward/tree-recovery';

export function recoverCommand(): Command {
  return new Command('recover')
    .description('recover the tree of what really happened from recorded rollouts')
    .argument('<dir>', 'a rollout folder, a run folder, or a folder of rollouts')
    .option('--json', 'one JSON document: {rollouts: [...]}')
    .addHelpText(
      'after',
      `
Examples:
  treeward recover runs/mixed-20261129-120000
  treeward recover runs/try/rollouts/s000001-g00-r0 --json`,
    )
    .action((dir: string, flags: { json?: boolean }) => {
      const directories = rolloutDirectories(resolve(dir));
      if (flags.json) {
        process.stdout.write(
          JSON.stringify({
            rollouts: directories.map((directory) => treeToJson(recoverDirectory(directory))),
          }) + '\n',
        );
        return;
      }
      for (const directory of directories)
        process.stdout.write(describeTree(recoverDirectory(directory)) + '\n');
    });
}

/** @throws TreewardError CLI_E_NO_RECORD */
export function rolloutDirectories(root: string): string[] {
  const isRollout = (directory: string): boolean => existsSync(join(directory, 'telemetry.ndjson'));
  if (isRollout(root)) return [root];
  for (const parent of [join(root, 'rollouts'), root]) {
    if (!existsSync(parent)) continue;
    const found = readdirSync(parent)
      .map((name) => join(parent, name))
      .filter(isRollout)
      .sort();
    if (found.length > 0) return found;
  }
  throw new TreewardError(
    'CLI_E_NO_RECORD',
    `${root}: no telemetry.ndjson in it, in its rollouts/ or in its folders`,
    {
      data: { file: root },
      hints: ['name a rollout folder, or the run folder that holds rollouts/'],
    },
  );
}
