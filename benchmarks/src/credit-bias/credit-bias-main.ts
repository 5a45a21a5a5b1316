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
/** Rows by toy, then by option; the lambdas of one option stand side by side. */
const byToy = new Map<string, Map<string, BiasRow[]>>();
for (const row of rows) {
  const options = byToy.get(row.toy) ?? new Map<string, BiasRow[]>();
  byToy.set(row.toy, options.set(row.option, [...(options.get(row.option) ?? []), row]));
}
const cell = (text: string): string => text.padStart(8);
for (const [toy, options] of byToy) {
  const lambdas = LAMBDAS.map((lambda) => cell(`λ ${lambda}`)).join('');
  process.stdout.write(`\n${`toy ${toy}`.padEnd(50)}${cell('bias')}${lambdas}${cell('cos')}${cell('var')}\n`);
  for (const [option, [first, ...more]] of options) {
    const at = (lambda: number): BiasRow | undefined =>
      [first!, ...more].find((row) => row.lambda === lambda);
    const cells = [
      first!.lambda === undefined ? figure(first!.bias) : '',
      ...LAMBDAS.map((lambda) => (at(lambda) ? figure(at(lambda)!.bias) : '')),
      first!.cosine.toFixed(3),
      first!.variance.toFixed(3),
    ];
    process.stdout.write(`${option.padEnd(50)}${cells.map(cell).join('')}\n`);
  }
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
