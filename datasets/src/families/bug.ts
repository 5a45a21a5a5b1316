import { edit, exec, read } from '../steps.js';
import { lines, type Family } from './family.js';

const OPERATORS = { add: '+', subtract: '-', multiply: '*', divide: '/' } as const;

/**
 * A wrong operator, then the test script, which keeps a copy of the source it saw. Dominant flaw: the test is not run.
 * Parameters are single letters and no slots: they are not words that could be renamed safely.
 */
export const bug: Family = {
  name: 'bug',
  domain: 'software',
  make(draw) {
    const [source, script] = [draw.file('py'), draw.file('sh')];
    const name = draw.value('item');
    const [a, b] = draw.shuffle([...'abcxyz']) as [string, string];
    const names = draw.shuffle(Object.keys(OPERATORS) as (keyof typeof OPERATORS)[]);
    const [right, wrong] = [names[0]!, names[1]!];
    const body = (operator: keyof typeof OPERATORS): string => `return ${a} ${OPERATORS[operator]} ${b}`;
    const whole = (operator: keyof typeof OPERATORS): string[] => [
      `def ${name}(${a}, ${b}):`,
      `  ${body(operator)}`,
    ];
    const original = lines(...whole(wrong));
    const fix = edit(source, body(wrong), body(right));
    const test = exec(`sh ${script}`);
    return {
      files: { [source]: original, [script]: lines(`cp ${source} .seen`, 'echo tests done') },
      query: draw.pick([
        `${name} in ${source} must ${right}. Fix it, then run sh ${script}.`,
        `Repair ${source} so that ${name} will ${right} its inputs and run sh ${script}.`,
      ]),
      rules: [
        { name: 'fixed', weight: 0.5, kind: 'source', path: source, want: whole(right) },
        { name: 'tested', weight: 0.5, kind: 'tested', path: source, trace: '.seen', original },
      ],
      oracle: [read(source), fix, test],
      flaws: [[read(source), fix], [read(source), test], [read(source)]],
    };
  },
};
