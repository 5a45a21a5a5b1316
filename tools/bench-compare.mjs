import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { BootError, describeError } from './lib/errors.mjs';
import { root } from './lib/paths.mjs';

const USAGE = `.ci/bench [--base REF] [--rounds N] [--full] [--check] [--out FILE] [--projects a,b] [-- FLAGS OF THE BENCHES]

Runs the bench target of every project that the change since REF affects (as \`nx affected -t bench --parallel=1\` does), in a
worktree of the base and in this checkout by turns, and compares medians over the rounds: never against yesterday's figure.

  --base REF     what to compare with: the merge base with REF (default: $NX_BASE or main; the parent where that is HEAD itself)
  --rounds N     how often both run (default 3)
  --full         without --quick
  --check        exit code 1 when a row is worse by more than 25 % and by more than its spread over the rounds
  --projects     these instead of the affected ones
  --out FILE     the comparison as rows of the benchmark format
`;

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length % 2 === 1
    ? sorted[sorted.length >> 1]
    : (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2;
};
const spread = (values) => Math.max(...values) - Math.min(...values);

/** What is worse by more than this is noise no longer, on two shared cores. */
const RELATIVE = 0.25;

/**
 * Rows of several rounds → one line per name: medians, `ratio` = head ÷ base, and `worse` when the change is for the worse by
 * more than 25 % and by more than either side varies by itself. A name that only one side has has no ratio.
 */
export function compareRounds(base, head) {
  const collect = (rounds) => {
    const rows = new Map();
    for (const row of rounds.flat())
      rows.set(row.name, { ...row, values: [...(rows.get(row.name)?.values ?? []), row.value] });
    return rows;
  };
  const [before, after] = [collect(base), collect(head)];
  return [...new Set([...before.keys(), ...after.keys()])].map((name) => {
    const [old, now] = [before.get(name), after.get(name)];
    const { unit, better } = now ?? old;
    if (!old || !now)
      return { name, unit, better, base: old && median(old.values), head: now && median(now.values) };
    const [was, is] = [median(old.values), median(now.values)];
    const loss = better === 'lower' ? is / was - 1 : was / is - 1;
    const noise = Math.max(spread(old.values), spread(now.values));
    const worse = loss > RELATIVE && Math.abs(is - was) > noise;
    return { name, unit, better, base: was, head: is, ratio: is / was, worse };
  });
}

const digits = (value) => (value === undefined ? '-' : Number(value.toPrecision(4)).toString());

/** Columns aligned; the last says `worse` where it is. */
export function comparisonTable(lines) {
  const cells = [
    ['row', 'unit', 'base', 'head', 'head/base', ''],
    ...lines.map(({ name, unit, base, head, ratio, worse }) => [
      name,
      unit,
      digits(base),
      digits(head),
      ratio === undefined ? (base === undefined ? 'new' : 'gone') : ratio.toFixed(2),
      worse ? 'worse' : '',
    ]),
  ];
  const widths = cells[0].map((_, i) => Math.max(...cells.map((row) => row[i].length)));
  return cells
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const run = (command, args, cwd) =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  });

const git = (checkout, ...args) => run('git', args, checkout).trim();

const nx = (checkout, ...args) => run(join(checkout, 'node_modules/.bin/nx'), args, checkout);

function baseCommit(checkout, ref) {
  const head = git(checkout, 'rev-parse', 'HEAD');
  const base = git(checkout, 'merge-base', ref, 'HEAD');
  return base === head ? git(checkout, 'rev-parse', 'HEAD~1') : base;
}

/** A worktree of the base with packages of its own: workspace links in node_modules are relative and must lead into it. */
function makeBase(checkout, commit, folder) {
  git(checkout, 'worktree', 'add', '--quiet', '--detach', folder, commit);
  const lock = (at) => readFileSync(join(at, 'package-lock.json'), 'utf8');
  if (lock(folder) === lock(checkout)) run('cp', ['-al', join(checkout, 'node_modules'), folder], checkout);
  else run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
}

/** One run of one project's bench; undefined when it has none there or fails. */
function benchRows(tree, project, flags, out) {
  rmSync(out, { force: true });
  try {
    nx(tree, 'run', `${project}:bench`, '--', ...flags, '--out', out);
    return JSON.parse(readFileSync(out, 'utf8')).rows;
  } catch (error) {
    process.stderr.write(`${project}:bench fails in ${tree}: ${error.message.split('\n')[0]}\n`);
    return undefined;
  }
}

/** Runs everything and resolves with the lines of `compareRounds`. @throws BootError BOOT_E_BENCH when a bench fails in this checkout */
export function compareCheckouts({ checkout, ref, rounds, flags, projects, say }) {
  const commit = baseCommit(checkout, ref);
  const wanted =
    projects ??
    JSON.parse(
      nx(checkout, 'show', 'projects', '--affected', '--withTarget', 'bench', '--base', commit, '--json'),
    );
  if (wanted.length === 0) return [];
  say(`${wanted.join(', ')}: ${rounds} rounds against ${commit.slice(0, 10)}`);
  const work = mkdtempSync(join(tmpdir(), 'treeward-bench-'));
  const base = join(work, 'base');
  try {
    makeBase(checkout, commit, base);
    const found = { base: [], head: [] };
    for (let round = 0; round < rounds; round++) {
      const sides = [
        ['base', base],
        ['head', checkout],
      ];
      for (const project of wanted) {
        for (const [side, tree] of round % 2 === 0 ? sides : sides.reverse()) {
          say(`round ${round + 1} of ${rounds}: ${project}, ${side}`);
          const rows = benchRows(tree, project, flags, join(work, 'rows.json'));
          if (rows === undefined && side === 'head')
            throw new BootError('BOOT_E_BENCH', `${project}:bench fails in this checkout`);
          found[side].push((rows ?? []).map((row) => ({ ...row, name: `${project}: ${row.name}` })));
        }
      }
    }
    return compareRounds(found.base, found.head);
  } finally {
    if (existsSync(base)) git(checkout, 'worktree', 'remove', '--force', base);
    rmSync(work, { recursive: true, force: true });
  }
}

function main(args) {
  const own = args.indexOf('--') < 0 ? args : args.slice(0, args.indexOf('--'));
  const { values } = parseArgs({
    args: own,
    options: {
      base: { type: 'string', default: process.env.NX_BASE || 'main' },
      rounds: { type: 'string', default: '3' },
      full: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      out: { type: 'string' },
      projects: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help || !(Number(values.rounds) >= 1)) {
    process.stdout.write(USAGE);
    return values.help ? 0 : 2;
  }
  const lines = compareCheckouts({
    checkout: root,
    ref: values.base,
    rounds: Number(values.rounds),
    flags: [...(values.full ? [] : ['--quick']), ...args.slice(own.length + 1)],
    projects: values.projects?.split(','),
    say: (text) => process.stderr.write(`[bench] ${text}\n`),
  });
  process.stdout.write(
    lines.length === 0 ? 'nothing with a bench is affected\n' : `${comparisonTable(lines)}\n`,
  );
  if (values.out) {
    mkdirSync(resolve(values.out, '..'), { recursive: true });
    const rows = lines.flatMap(({ name, unit, better, head, ratio }) =>
      head === undefined
        ? []
        : [
            {
              name,
              value: head,
              unit,
              better,
              ...(ratio ? { against: 'base', ratio } : {}),
              n: Number(values.rounds),
            },
          ],
    );
    writeFileSync(values.out, `${JSON.stringify({ schema: 1, machine: {}, rows }, null, 2)}\n`);
  }
  const worse = lines.filter((line) => line.worse);
  if (worse.length > 0) process.stdout.write(`\n${worse.length} rows are worse than the base\n`);
  return values.check && worse.length > 0 ? 1 : 0;
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${describeError(error)}\n`);
    process.exitCode = error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' ? 2 : 1;
  }
}
