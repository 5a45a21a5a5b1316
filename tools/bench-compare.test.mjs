import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compareCheckouts, compareRounds, comparisonTable } from './bench-compare.mjs';
import { scratchFolder } from './testing/scratch.mjs';

const row = (name, value, better = 'lower') => ({ name, value, unit: 'ms', better, n: 1 });

test('medians of rounds are compared, worse is what exceeds 25 % and the spread', () => {
  const lines = compareRounds(
    [
      [row('slow', 10), row('noisy', 5), row('rate', 100, 'higher'), row('gone', 1)],
      [row('slow', 11), row('noisy', 15), row('rate', 90, 'higher')],
      [row('slow', 30), row('noisy', 10), row('rate', 95, 'higher')],
    ],
    [[row('slow', 40), row('noisy', 14), row('rate', 40, 'higher'), row('new', 2)]],
  );
  const by = Object.fromEntries(lines.map((line) => [line.name, line]));
  assert.equal(by.slow.base, 11);
  assert.equal(by.slow.worse, true, '40 against 11, which varied by 20');
  assert.equal(by.noisy.worse, false, '14 against 10, which varied by 10');
  assert.equal(by.rate.worse, true, 'higher is better');
  assert.equal(by.rate.ratio, 40 / 95);
  const table = comparisonTable(lines);
  assert.match(table, /^row +unit +base +head +head\/base$/m);
  assert.match(table, /^slow +ms +11 +40 +3\.64 +worse$/m);
  assert.match(table, /^gone +ms +1 +- +gone$/m);
  assert.match(table, /^new +ms +- +2 +new$/m);
});

/** A repository of two commits whose bench takes what `speed` says; nx is a stand-in that logs what it is asked. */
function example(t) {
  const checkout = scratchFolder(t);
  const log = join(scratchFolder(t), 'log');
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
      cwd: checkout,
      stdio: 'pipe',
    });
  const bin = join(checkout, 'node_modules/.bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(
    join(bin, 'nx'),
    `#!${process.execPath}
const fs = require('node:fs');
const args = process.argv.slice(2);
fs.appendFileSync(${JSON.stringify(log)}, JSON.stringify({ args, speed: fs.readFileSync('speed', 'utf8') }) + '\\n');
if (args[0] === 'show') console.log(JSON.stringify(['toy']));
else {
  const value = Number(fs.readFileSync('speed', 'utf8'));
  if (Number.isNaN(value)) process.exit(1);
  const rows = [{ name: 'toy/step', value, unit: 'ms', better: 'lower', n: 1 }];
  fs.writeFileSync(args[args.indexOf('--out') + 1], JSON.stringify({ schema: 1, rows }));
}
`,
  );
  chmodSync(join(bin, 'nx'), 0o755);
  writeFileSync(join(checkout, 'package-lock.json'), '{}');
  writeFileSync(join(checkout, '.gitignore'), 'node_modules\n');
  git('init', '-q', '-b', 'main');
  const commit = (speed) => {
    writeFileSync(join(checkout, 'speed'), speed);
    git('add', '-A');
    git('commit', '-qm', speed);
  };
  commit('10');
  commit('20');
  const calls = () =>
    readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  return { checkout, calls, commit, git };
}

test('base and head run in turns, in trees of their own, and nothing is left behind', (t) => {
  const { checkout, calls, git } = example(t);
  const said = [];
  const options = { checkout, ref: 'main', rounds: 3, flags: ['--quick'], say: (text) => said.push(text) };
  const lines = compareCheckouts(options);
  assert.deepEqual(lines, [
    { name: 'toy: toy/step', unit: 'ms', better: 'lower', base: 10, head: 20, ratio: 2, worse: true },
  ]);
  const [selection, ...runs] = calls();
  assert.deepEqual(selection.args.slice(0, 5), ['show', 'projects', '--affected', '--withTarget', 'bench']);
  assert.deepEqual(
    runs.map(({ speed }) => speed),
    ['10', '20', '20', '10', '10', '20'],
  );
  assert.deepEqual(runs[0].args.slice(0, 5), ['run', 'toy:bench', '--', '--quick', '--out']);
  assert.equal(existsSync(runs[0].args.at(-1)), false);
  assert.equal(git('worktree', 'list').toString().trim().split('\n').length, 1);
});

test('a bench that fails at the base is new, one that fails here is an error', (t) => {
  const { checkout, commit } = example(t);
  const options = { checkout, ref: 'main', rounds: 1, flags: [], projects: ['toy'], say: () => {} };
  commit('broken');
  assert.throws(() => compareCheckouts(options), { code: 'BOOT_E_BENCH' });
  commit('30');
  assert.equal(
    comparisonTable(compareCheckouts(options)).split('\n')[1],
    'toy: toy/step  ms    -     30    new',
  );
});
