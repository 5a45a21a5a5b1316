import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { TreewardError, writeJsonAtomic } from '@treeward/base';
import { compareEvaluations, describeComparison, detectFormat, type EvaluationSummary } from '@treeward/eval';
import { adapterByName } from '@treeward/harness-adapters';
import { checkpointFolder } from '../checkpoint-folder.js';
import { numberFlag } from '../cli/number-flag.js';
import { Progress } from '../progress.js';
import { readSummary, writeComparison } from './compare-command.js';
import { COMMAND_OF } from './formats.js';
import { untrainedCheckpoint } from './untrained.js';

interface MatrixFlags {
  tasks: string[];
  harness: string[];
  policy: string[];
  out: string;
  seed: string;
  json?: boolean;
}

interface Cell {
  tasks: string;
  harness: string;
  label: string;
  /** `--engine`, and `--checkpoint` of a llama engine. */
  engine: string[];
  out: string;
}

/** One row of `matrix.json`: what a table needs, without the runs. */
interface MatrixRow {
  tasks: string;
  format: string;
  harness: string;
  harnessVersion: string;
  policy: string;
  /** Tasks with a number, of all. */
  graded: number;
  of: number;
  runsPerTask: number;
  /** Over tasks, with the 95 % bootstrap interval. Null when nothing was graded. */
  mean: { estimate: number; low: number; high: number } | null;
  lowest: number | null;
  highest: number | null;
  /** The difference from the first policy on the same tasks and harness, paired by task. */
  gain: { estimate: number; low: number; high: number } | null;
  seconds: number;
}

const last = (path: string): string => path.split('/').filter(Boolean).at(-1) ?? path;

export function matrixCommand(): Command {
  return new Command('matrix')
    .description('every policy through every harness on every task set, then one comparison')
    .requiredOption('--tasks <paths...>', 'task sets, each in its own format')
    .requiredOption('--harness <names...>', 'harnesses')
    .requiredOption(
      '--policy <label=spec...>',
      'a checkpoint folder, untrained (the embedded architecture, initial weights), or what --engine takes',
    )
    .requiredOption('--out <dir>', 'where the evaluations go; the same again goes on with them')
    .option('--seed <n>', 'seed of untrained weights', '0')
    .option('--json', 'print the rows as JSON')
    .argument('[options...]', 'after --: options of each evaluation, such as --runs 2')
    .addHelpText(
      'after',
      `
Example:
  treeward eval matrix --tasks mini mini-pinchbench --harness claude-code pi \\
    --policy base=untrained cold-start=datasets/cold-start trained=runs/a/checkpoints/step_000013 --out runs/m -- --runs 2`,
    )
    .action((options: string[], flags: MatrixFlags) => runMatrix(options, flags));
}

async function runMatrix(options: readonly string[], flags: MatrixFlags): Promise<void> {
  const out = resolve(flags.out);
  const seed = numberFlag('--seed', flags.seed, { min: 0, integer: true });
  for (const harness of flags.harness) adapterByName(harness);
  const policies = await Promise.all(flags.policy.map((text) => policyOf(text, out, seed)));
  const cells = flags.tasks.flatMap((tasks) =>
    flags.harness.flatMap((harness) =>
      policies.map(({ label, engine }): Cell => ({
        tasks,
        harness,
        label,
        engine,
        out: join(out, [last(tasks), harness, label].join('--')),
      })),
    ),
  );
  const progress = new Progress({ quiet: flags.json ?? false });
  const summaries: EvaluationSummary[] = [];
  const rows: MatrixRow[] = [];
  for (const [at, cell] of cells.entries()) {
    await runCell(cell, options);
    const summary = readSummary(cell.out);
    summaries.push(summary);
    rows.push(rowOf(cell, summary, cells, summaries));
    writeJsonAtomic(join(out, 'matrix.json'), rows); // after each cell: an hour's work can be looked at before its end
    progress.line(
      `${at + 1}/${cells.length} ${last(cell.tasks)} · ${cell.harness} · ${cell.label}: ${summary.all.meanScore?.estimate.toFixed(3) ?? '–'} · ${summary.seconds.toFixed(0)} s`,
    );
  }
  const comparison = compareEvaluations(summaries);
  writeComparison(comparison, out);
  process.stdout.write(flags.json ? `${JSON.stringify({ rows })}\n` : `${describeComparison(comparison)}\n`);
  if (rows.some(({ graded, of }) => graded < of)) process.exitCode = 1;
}

/** @throws TreewardError CLI_E_POLICY, CHECKPOINT_E_MISSING */
async function policyOf(
  text: string,
  out: string,
  seed: number,
): Promise<{ label: string; engine: string[] }> {
  const [, label, spec] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
  if (label === undefined || spec === undefined) {
    throw new TreewardError('CLI_E_POLICY', `--policy ${text}: not label=spec`, {
      data: { field: '--policy' },
      hints: ['--policy base=untrained cold-start=datasets/cold-start perfect=reference'],
    });
  }
  if (/^(reference|noop|llama)$|^(scripted|anthropic|openai):/.test(spec))
    return { label, engine: ['--engine', spec] };
  const checkpoint =
    spec === 'untrained'
      ? await untrainedCheckpoint(
          join(out, 'untrained'),
          join(await checkpointFolder('datasets/cold-start', '--policy'), 'tokenizer.json'),
          seed,
        )
      : await checkpointFolder(spec, '--policy');
  return { label, engine: ['--engine', 'llama', '--checkpoint', checkpoint] };
}

/** In a process of its own: an engine that dies takes one cell with it, and a cell that is done starts nothing. */
async function runCell(cell: Cell, options: readonly string[]): Promise<void> {
  const child = spawn(
    process.execPath,
    [
      process.argv[1]!,
      'eval',
      COMMAND_OF[detectFormat(cell.tasks)],
      ...['--tasks', cell.tasks, '--harness', cell.harness, '--label', cell.label, '--out', cell.out],
      ...cell.engine,
      ...options,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)));
  const code = await new Promise<number | null>((done, fail) => child.on('error', fail).on('close', done));
  if (code === 0) return;
  const error = /^error [A-Z_]+: .*$/m.exec(said)?.[0] ?? said.trim().split('\n').at(-1) ?? '';
  throw new TreewardError('RUN_E_CELL', `${cell.out}: the evaluation ended with ${code}: ${error}`, {
    data: { file: cell.out, code },
    hints: ['the same command again goes on where it stopped'],
  });
}

function rowOf(
  cell: Cell,
  summary: EvaluationSummary,
  cells: readonly Cell[],
  summaries: readonly EvaluationSummary[],
): MatrixRow {
  const first = cells.findIndex(({ tasks, harness }) => tasks === cell.tasks && harness === cell.harness);
  const [, compared] = compareEvaluations([summaries[first]!, summary]).rows;
  const scores = summary.tasks.flatMap(({ runs }) => runs.flatMap(({ score }) => score ?? []));
  const interval = (value: { estimate: number; low: number; high: number } | null | undefined) =>
    value ? { estimate: value.estimate, low: value.low, high: value.high } : null;
  return {
    tasks: last(cell.tasks),
    format: summary.identity.format,
    harness: cell.harness,
    harnessVersion: summary.harnessVersion,
    policy: cell.label,
    graded: summary.tasks.filter(({ runs }) => runs.some(({ score }) => score !== null)).length,
    of: summary.tasks.length,
    runsPerTask: summary.runsPerTask,
    mean: interval(summary.all.meanScore),
    lowest: scores.length > 0 ? Math.min(...scores) : null,
    highest: scores.length > 0 ? Math.max(...scores) : null,
    gain: summaries[first] === summary ? null : interval(compared?.against?.paired.difference),
    seconds: Math.round(summary.seconds),
  };
}
