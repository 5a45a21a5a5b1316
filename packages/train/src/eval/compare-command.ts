import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { readJson, TreewardError, writeFileAtomic, writeJsonAtomic } from '@treeward/base';
import {
  compareEvaluations,
  comparisonHtml,
  comparisonSvg,
  describeComparison,
  type EvaluationSummary,
} from '@treeward/eval';

interface CompareFlags {
  out?: string;
  json?: boolean;
}

/** @throws TreewardError RUN_E_SUMMARY for a folder without a finished evaluation */
function readSummary(folder: string): EvaluationSummary {
  const file = join(resolve(folder), 'summary.json');
  const summary = existsSync(file) ? readJson<Partial<EvaluationSummary>>(file) : null;
  if (summary?.schema !== 1 || summary.identity === undefined) {
    throw new TreewardError('RUN_E_SUMMARY', `${folder} holds no evaluation`, {
      data: { file },
      hints: ['name the --out of `treeward eval …`'],
    });
  }
  return summary as EvaluationSummary;
}

export function compareCommand(): Command {
  return new Command('compare')
    .description('put evaluations side by side: one table, one picture, one page')
    .argument(
      '<folders...>',
      'what --out of evaluations named; the first of a harness is what the others are compared with',
    )
    .option('--out <dir>', 'write comparison.{json,svg,html} there')
    .option('--json', 'print the comparison as JSON')
    .addHelpText(
      'after',
      `\nExample:\n  treeward eval compare runs/base runs/sft runs/rl --out /tmp/comparison`,
    )
    .action((folders: string[], flags: CompareFlags) => {
      const comparison = compareEvaluations(folders.map(readSummary));
      const files: Record<string, string> = {};
      if (flags.out !== undefined) {
        const path = (kind: string): string => join(resolve(flags.out!), `comparison.${kind}`);
        writeJsonAtomic((files['json'] = path('json')), comparison);
        writeFileAtomic((files['svg'] = path('svg')), comparisonSvg(comparison));
        writeFileAtomic((files['html'] = path('html')), comparisonHtml(comparison));
      }
      if (flags.json) process.stdout.write(`${JSON.stringify({ ...comparison, files })}\n`);
      else process.stdout.write(`${describeComparison(comparison)}\n${Object.values(files).join('\n')}\n`);
    });
}
