// How often recovery is right, measured against simulated rollouts whose structure is known by construction.
// Method: benchmarks/README.md. Run: npx nx run benchmarks:recovery -- [--quick] [--out FILE] [--check]
import { fileURLToPath } from 'node:url';
import { readJson, toPlainError, TreewardError, writeBenchRows, writeJsonAtomic } from '@treeward/base';
import { Command } from 'commander';
import { CLEAN, FAULTY, type Condition } from './faults/conditions.js';
import { evaluateSet } from './run/evaluate-set.js';
import { failureTable, table } from './run/report.js';
import { cleanRows, faultRows, meetsBar, type Row } from './run/rows.js';
import { scaleRows } from './run/scale.js';
import type { Tally } from './run/tally.js';
import { fitConfidence } from './score/calibration.js';
import { behaviourSchema, loadBehaviours } from './simulate/behaviour.js';

const BEHAVIOURS = fileURLToPath(new URL('../../behaviours/', import.meta.url));

interface Options {
  quick: boolean;
  set: string;
  behaviours: string[];
  rollouts?: string;
  conditions?: string;
  threads?: string;
  out?: string;
  calibrate?: string;
  failures: string;
  scale: boolean;
  check: boolean;
}

async function main(options: Options): Promise<number> {
  // Thresholds and confidences come from the tuning set, figures from the other: they share no behaviour and no seed.
  const set = options.calibrate === undefined ? options.set : 'tuning';
  const behaviours = [`${BEHAVIOURS}${set}`, ...options.behaviours].flatMap(loadBehaviours);
  const started = performance.now();
  const shared = {
    behaviours,
    seed: set,
    ...(options.threads && { threads: Number(options.threads) }),
  };
  const rollouts = Number(options.rollouts ?? (options.quick ? 4 : 100));
  const evaluateUnder = (conditions: readonly Condition[], of: number, what: string): Promise<Tally[]> =>
    evaluateSet({ ...shared, conditions, rollouts: of, progress: progress(what) });

  if (options.calibrate !== undefined) {
    const tallies = await evaluateUnder(FAULTY, rollouts, 'calibration');
    const judged = tallies.flatMap((tally) => tally.judged);
    writeJsonAtomic(options.calibrate, fitConfidence(judged));
    console.log(`${options.calibrate}: confidences from ${judged.length} edges of the tuning set`);
    return 0;
  }
  const wanted = wantedConditions(options.conditions);
  const clean = rollouts > 0 ? await evaluateUnder(wanted([CLEAN]), 2 * rollouts, 'clean') : [];
  const faulty = rollouts > 0 ? await evaluateUnder(wanted(FAULTY), rollouts, 'faults') : [];
  const rows: Row[] = [...clean.flatMap(cleanRows), ...(faulty.length > 0 ? faultRows(faulty) : [])];
  if (options.scale) rows.push(...(await scaleRows(scaleBehaviours(), options.quick)));
  console.log(table(rows));
  if (Number(options.failures) > 0) showFailures([...clean, ...faulty], Number(options.failures));
  const minutes = (performance.now() - started) / 60_000;
  console.log(`\n${behaviours.length} behaviours of "${set}", ${minutes.toFixed(1)} min`);
  if (options.out) {
    writeBenchRows(options.out, rows, { seeds: [set] });
  }
  const missed = rows.filter((row) => !meetsBar(row));
  if (missed.length > 0) console.log(`bars missed: ${missed.map(({ name }) => name).join(', ')}`);
  return options.check && missed.length > 0 ? 1 : 0;
}

/** Conditions by name; without names all of them. */
function wantedConditions(names: string | undefined): (all: readonly Condition[]) => Condition[] {
  const wanted = names?.split(',');
  const known = [CLEAN, ...FAULTY].map(({ name }) => name);
  const unknown = wanted?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0) {
    throw new TreewardError('BENCH_E_CONDITION', `--conditions: there is no ${unknown.join(', ')}`, {
      hints: [`there are ${known.join(', ')}`],
    });
  }
  return (all) => all.filter(({ name }) => wanted?.includes(name) ?? true);
}

function scaleBehaviours(): Parameters<typeof scaleRows>[0] {
  const load = (name: string) => behaviourSchema.parse(readJson(`${BEHAVIOURS}scale/${name}.json`));
  return { manyCalls: load('many-calls'), longContext: load('long-context') };
}

function showFailures(tallies: readonly Tally[], kinds: number): void {
  for (const { condition, failures } of tallies) {
    if (failures.length > 0) console.log(`\n${condition}\n${failureTable(failures, kinds)}`);
  }
}

/** On a terminal only: a line that is overwritten. */
function progress(what: string): (done: number, of: number) => void {
  return (done, of) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${what} ${done}/${of}${done === of ? '\n' : ''}`);
  };
}

const command = new Command('recovery')
  .description('Tree recovery against simulated rollouts whose structure is known')
  .option('--quick', 'few rollouts', false)
  .option('--set <name>', 'behaviours and seeds: held-out or tuning', 'held-out')
  .option(
    '--behaviours <dir>',
    'a directory of further behaviour files (repeatable)',
    (dir: string, all: string[]) => [...all, dir],
    [] as string[],
  )
  .option('--rollouts <n>', 'of each behaviour under each condition; 0: the timing alone')
  .option('--conditions <names>', 'clean and names of faults, joined by commas (default: all)')
  .option('--threads <n>', 'worker threads (default: all cores)')
  .option('--out <file>', 'rows as JSON')
  .option('--calibrate <file>', 'fit the table of confidences on the tuning set and write it here')
  .option('--failures <n>', 'show the most frequent kinds of failure', '0')
  .option('--no-scale', 'leave the timing out')
  .option('--check', 'exit 1 when a bar is missed', false)
  .addHelpText(
    'after',
    '\nExamples:\n  recovery --quick --out rows.json\n  recovery --behaviours my-behaviours --failures 10\n  recovery --calibrate packages/tree-recovery/src/calibration.json',
  );

command.action(async () => {
  try {
    process.exitCode = await main(command.opts<Options>());
  } catch (error) {
    const { code, message } = toPlainError(error);
    console.error(`${code}: ${message}`);
    process.exitCode = 2;
  }
});
await command.parseAsync();
