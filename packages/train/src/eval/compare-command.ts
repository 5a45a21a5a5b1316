import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { readJson, TreewardError, writeFileAtomic, writeJsonAtomic } from '@treeward/base';
import {
  compareEvaluations,
  comparisonHtml,
  comparisonSvg,
  describeComparison,
  type Comparison,
  type EvaluationSummary,
} from '@treeward/eval';

interface CompareFlags {
  out?: string;
  json?: boolean;
}

/** @throws TreewardError RUN_E_SUMMARY for a folder without a finished evaluation */
export function readSummary(folder: string): EvaluationSummary {
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

/** Writes `comparison.{json,svg,html}`. @returns their paths by kind */
export function writeComparison(comparison: Comparison, folder: string): Record<string, string> {
  const path = (kind: string): string => join(folder, `comparison.${kind}`);
  writeJsonAtomic(path('json'), comparison);
  writeFileAtomic(path('svg'), comparisonSvg(comparison));
  writeFileAtomic(path('html'), comparisonHtml(comparison));
  return { json: path('json'), svg: path('svg'), html: path('html') };
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
      const files = flags.out === undefined ? {} : writeComparison(comparison, resolve(flags.out));
      if (flags.json) process.stdout.write(`${JSON.stringify({ ...comparison, files })}\n`);
      else process.stdout.write(`${describeComparison(comparison)}\n${Object.values(files).join('\n')}\n`);
    });
}
