import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { TreewardError } from '@treeward/base';
import { readRecord } from '@treeward/telemetry';
import {
  applyPreset,
  describeTree,
  presets,
  recoverTree,
  trainedSegments,
  treeToAtif,
  treeToDot,
  treeToJson,
  type RolloutTree,
} from '@treeward/tree-recovery';

interface Flags {
  preset?: keyof typeof presets;
  json?: boolean;
  atif?: boolean;
  dot?: boolean;
  segments?: boolean;
}

export function recoverCommand(): Command {
  const format = (name: keyof Flags, text: string): Option =>
    new Option(`--${name}`, text).conflicts(
      (['json', 'atif', 'dot', 'segments'] as const).filter((other) => other !== name),
    );
  return new Command('recover')
    .description('recover the tree of what really happened from recorded rollouts')
    .argument('<dir>', 'a rollout folder, a run folder, or a folder of rollouts')
    .addOption(
      new Option('--preset <name>', 'leave out what this method leaves out').choices(Object.keys(presets)),
    )
    .addOption(format('json', 'one JSON document: {rollouts: [...]}'))
    .addOption(format('atif', 'one ATIF document per branch, one a line'))
    .addOption(format('dot', 'Graphviz text, one graph per rollout'))
    .addOption(format('segments', 'one line of JSON per sampled reply that trains'))
    .addHelpText(
      'after',
      `
Examples:
  treeward recover runs/mixed-20261129-120000
  treeward recover runs/try/rollouts/s000001-g00-r0 --json
  treeward recover runs/try/rollouts/s000001-g00-r0 --dot | dot -Tsvg > tree.svg`,
    )
    .action((dir: string, flags: Flags) => {
      const write = (line: string): void => void process.stdout.write(line + '\n');
      const preset = flags.preset ? presets[flags.preset] : null;
      const documents: unknown[] = [];
      for (const directory of rolloutDirectories(resolve(dir))) {
        const record = readRecord(directory);
        const recovered = recoverTree(record);
        const tree: RolloutTree = preset ? applyPreset(recovered, preset) : recovered;
        if (flags.json) documents.push(treeToJson(tree));
        else if (flags.dot) write(treeToDot(tree));
        else if (flags.atif) treeToAtif(tree, record).forEach((one) => write(JSON.stringify(one)));
        else if (flags.segments) trainedSegments(tree).forEach((one) => write(JSON.stringify(one)));
        else write(describeTree(tree));
      }
      if (flags.json) write(JSON.stringify({ rollouts: documents }));
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
