import { Command } from 'commander';
import { FAULTS } from '@treeward/rollout';

const MEANING = {
  retry: 'run again elsewhere, then left out',
  exclude: 'outside baseline and loss',
  own: 'the policy’s own: judged or 0, counted apart',
} as const;

export function faultsCommand(): Command {
  return new Command('faults')
    .description('what can go wrong in a rollout, and what then becomes of it')
    .option('--json', 'print the table as JSON')
    .action(({ json }: { json?: boolean }) => {
      if (json) return void process.stdout.write(JSON.stringify(FAULTS) + '\n');
      const rows = Object.entries(FAULTS).map(([kind, rule]) => [
        kind,
        rule.class,
        MEANING[rule.then],
        rule.codes.join(' '),
        rule.examples,
      ]);
      const all = [['kind', 'class', 'treatment', 'codes', 'examples'], ...rows];
      const widths = all[0]!.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
      for (const row of all)
        process.stdout.write(
          row
            .map((cell, column) => cell.padEnd(widths[column]!))
            .join('  ')
            .trimEnd() + '\n',
        );
    });
}
