/**
 * usage: nx run benchmarks:credit-bias -- [--out FILE]
 * Prints the bias of every credit option on every toy of design/credit.md; exact, so there is nothing to repeat.
 */
import { writeBenchRows } from '@treeward/base';
import { Command } from 'commander';
import { biasTable, LAMBDAS, type BiasRow } from './bias-table.js';

const { out } = new Command('credit-bias')
  .description('exact bias of every credit option on the toys of design/credit.md')
  .option('--quick', 'the same: everything is enumerated in seconds')
  .option('--out <file>', 'rows as JSON')
  .parse()
  .opts<{ out?: string }>();

const rows = biasTable();
const figure = (value: number): string => (value < 1e-6 ? '0' : value.toFixed(3));
const byOption = new Map<string, BiasRow[]>();
for (const row of rows) {
  const key = `${row.toy}\0${row.option}`;
  byOption.set(key, [...(byOption.get(key) ?? []), row]);
}
let toy = '';
for (const [first, ...more] of byOption.values()) {
  if (first!.toy !== toy) {
    toy = first!.toy;
    const lambdas = LAMBDAS.map((lambda) => `λ ${lambda}`.padStart(8)).join('');
    process.stdout.write(`\n${`toy ${toy}`.padEnd(50)}${'bias'.padStart(8)}${lambdas}     cos     var\n`);
  }
  const withLambda = LAMBDAS.map((lambda) => [first!, ...more].find((row) => row.lambda === lambda));
  const single = first!.lambda === undefined ? figure(first!.bias) : '';
  const cells = withLambda.map((row) => (row ? figure(row.bias) : '').padStart(8)).join('');
  const { cosine, variance } = first!;
  process.stdout.write(
    `${first!.option.padEnd(50)}${single.padStart(8)}${cells}${cosine.toFixed(3).padStart(8)}${variance.toFixed(3).padStart(8)}\n`,
  );
}
if (out) {
  writeBenchRows(
    out,
    rows.map(({ toy: of, option, lambda, bias, cosine, variance }) => ({
      name: ['bias', of, option, ...(lambda === undefined ? [] : [`lambda=${lambda}`])].join('/'),
      value: bias,
      unit: 'relative',
      better: 'lower',
      n: 1,
      config: { cosine, variance },
    })),
  );
}
