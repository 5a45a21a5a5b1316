import { randomStream } from '@treeward/base';
import type { Draws, Table } from './process.js';
import type { Toy, ToyCall, ToyRun } from './toy.js';

/** The toys of design/credit.md. Times are ordinal. */

const call = (
  name: string,
  row: string,
  action: number,
  [start, finish]: readonly [number, number],
  more: { parent?: string; context?: string } = {},
): ToyCall => ({
  name,
  tokens: [{ row, action }],
  start,
  finish,
  context: more.context ?? row,
  parent: more.parent ?? null,
});

const table = (rows: Record<string, readonly number[]>): Table => new Map(Object.entries(rows));

/** Success chance by (first action, attempt's action); a sub-agent that did well adds 0.25. */
const FIRST = [
  [0.3, 0.6],
  [0.45, 0.2],
] as const;
const SECOND = [
  [0.25, 0.7],
  [0.5, 0.35],
] as const;

/** A: a harness tree. The first action may start a sub-agent; an attempt that fails is followed by another one. */
export const harnessTree: Toy = {
  name: 'A',
  about: 'sub-agent if the policy wants one, an attempt, another attempt after a failure; one outcome',
  table: table({
    a0: [0.3, -0.2],
    u: [0.1, 0.4],
    'a1|0': [0.2, -0.5],
    'a1|1': [-0.3, 0.6],
    'a2|0': [0, 0.7],
    'a2|1': [0.5, -0.1],
  }),
  process({ token, chance }: Draws): ToyRun {
    const a0 = token('a0') as 0 | 1;
    const calls = [call('n0', 'a0', a0, [0, 1])];
    const edges: ToyRun['edges'] = [];
    let bonus = 0;
    let seen = `${a0}`;
    if (a0 === 1) {
      const u = token('u');
      calls.push(call('u', 'u', u, [2, 3], { parent: 'n0' }));
      edges.push({ from: 'n0', to: 'u', type: 'spawn' });
      bonus = 0.25 * u;
      seen += u;
    }
    const attempt = { parent: 'n0', context: `attempt ${seen}` };
    const a1 = token(`a1|${a0}`) as 0 | 1;
    calls.push(call('c1', `a1|${a0}`, a1, [4, 5], attempt));
    edges.push(
      a0 === 1 ? { from: 'u', to: 'c1', type: 'return' } : { from: 'n0', to: 'c1', type: 'continue' },
    );
    const first = FIRST[a0][a1] + bonus;
    if (chance([1 - first, first]) === 1)
      return { calls, edges, reward: 1, leafRewards: new Map([['c1', 1]]) };

    const a2 = token(`a2|${a0}`) as 0 | 1;
    calls.push(call('c2', `a2|${a0}`, a2, [6, 7], attempt));
    edges.push({ from: 'c1', to: 'c2', type: 'retry' });
    const second = SECOND[a0][a2] + bonus;
    const reward = chance([1 - second, second]) === 1 ? 0.8 : -0.2;
    return { calls, edges, reward, leafRewards: new Map([['c2', reward]]), failed: new Set(['c1']) };
  },
};

/** C: two agents at once, whose contexts were settled when they started; the outcome depends on both. */
export const concurrentAgents: Toy = {
  name: 'C',
  about: 'one call starts two agents that run at the same time; the outcome depends on both',
  table: table({
    m: [0.3, -0.2],
    'b|0': [0.1, 0.4],
    'b|1': [-0.3, 0.2],
    'c|0': [0.2, -0.5],
    'c|1': [0.6, 0.1],
  }),
  process({ token }: Draws): ToyRun {
    const m = token('m') as 0 | 1;
    const b = token(`b|${m}`) as 0 | 1;
    const c = token(`c|${m}`) as 0 | 1;
    const rewards = [
      [
        [0.1, 0.9],
        [0.4, 0.2],
      ],
      [
        [0.7, 0.2],
        [0.3, 1],
      ],
    ] as const;
    return {
      calls: [
        call('m', 'm', m, [0, 1]),
        call('b', `b|${m}`, b, [2, 5], { parent: 'm' }),
        call('c', `c|${m}`, c, [3, 6], { parent: 'm' }),
      ],
      edges: [
        { from: 'm', to: 'b', type: 'spawn' },
        { from: 'm', to: 'c', type: 'spawn' },
      ],
      reward: rewards[m][b][c],
    };
  },
};

/** Logits and rewards of the toys below: any will do, so they are drawn by name. */
const drawn = (name: string, low: number, high: number): number =>
  low + (high - low) * randomStream('credit-bias', name).next();

function drawnTable(rows: readonly string[]): Table {
  return new Map(rows.map((row) => [row, [0, drawn(`row ${row}`, -1, 1)]]));
}
const drawnReward = (...actions: number[]): number => drawn(`reward ${actions.join()}`, 0, 1);

const BITS = [0, 1] as const;
const pairs = BITS.flatMap((a) => BITS.map((b) => [a, b] as const));
const triples = pairs.flatMap(([a, b]) => BITS.map((c) => [a, b, c] as const));

/** A long call may finish before or after another agent's second call starts: what that one sees depends on it. */
export const interleaved: Toy = {
  name: 'interleaved finishes',
  about: "whether one agent's reply has finished when another call starts depends on the reply itself",
  table: drawnTable([
    'A',
    'B',
    ...BITS.map((b) => `C|${b}`),
    ...pairs.map(([b, a]) => `C|${b}${a}`),
    ...triples.map((abc) => `J|${abc.join('')}`),
  ]),
  process({ token }: Draws): ToyRun {
    const a = token('A');
    const b = token('B');
    const long = a === 1;
    const row = long ? `C|${b}` : `C|${b}${a}`;
    const c = token(row);
    const joined = `J|${a}${b}${c}`;
    const j = token(joined);
    return {
      calls: [
        call('A', 'A', a, [0, long ? 10 : 3]),
        call('B', 'B', b, [1, 2]),
        call('C', row, c, [4, 6], { parent: 'B' }),
        call('J', joined, j, [11, 12], { parent: 'C' }),
      ],
      edges: [
        { from: 'A', to: long ? 'J' : 'C', type: 'return' },
        { from: 'B', to: 'C', type: 'continue' },
        { from: 'C', to: 'J', type: 'continue' },
      ],
      reward: drawnReward(a, b, c, j),
    };
  },
};

/** One agent's reply makes the harness end another's call between its first and second token. */
export const cutCall: Toy = {
  name: 'cut call',
  about: "a call in flight is ended by another call's reply",
  table: drawnTable([
    'A',
    'B',
    ...BITS.map((a) => `A2|${a}`),
    ...pairs.map(([a, b]) => `J|${a}${b}`),
    ...triples.map((abc) => `J|${abc.join('')}`),
  ]),
  process({ token }: Draws): ToyRun {
    const a = token('A');
    const b = token('B');
    const first = call('A', 'A', a, [0, 5]);
    const second = call('B', 'B', b, [1, 2]);
    const rest = b === 0 ? [token(`A2|${a}`)] : [];
    for (const action of rest) first.tokens.push({ row: `A2|${a}`, action });
    const joined = `J|${[a, ...rest, b].join('')}`;
    const j = token(joined);
    return {
      calls: [first, second, call('J', joined, j, [6, 7])],
      edges: [
        { from: 'A', to: 'J', type: 'return' },
        { from: 'B', to: 'J', type: 'return' },
      ],
      reward: drawnReward(a, ...rest, b, j),
    };
  },
};

/** A long reply runs into the client's time limit with probability 0.9; the prompt is then sampled again, once. */
export const lostReplies: Toy = {
  name: 'lost replies',
  about: 'long replies are often given up by the client and sampled again',
  table: table({ p: [0.2, 0.1] }),
  process({ token, chance }: Draws): ToyRun {
    const first = token('p');
    const calls = [call('F', 'p', first, [0, 1])];
    if (first === 0) return { calls, edges: [], reward: 1 };
    if (chance([0.9, 0.1]) === 1) return { calls, edges: [], reward: 1 };
    const again = token('p');
    calls.push(call('G', 'p', again, [2, 3]));
    const edges: ToyRun['edges'] = [{ from: 'F', to: 'G', type: 'retry' }];
    if (again === 0 || chance([0.9, 0.1]) === 1) {
      return { calls, edges, reward: 0.6, undelivered: new Set(['F']) };
    }
    return { calls, edges, reward: 0, undelivered: new Set(['F', 'G']) };
  },
};

/** A second successor that exists only if the first one's reply asked for it. */
export const lateSuccessor: Toy = {
  name: 'late successor',
  about: 'a further successor appears because of how the first one turned out',
  table: drawnTable(['A', ...BITS.map((a) => `B|${a}`), ...pairs.map(([a, b]) => `D|${a}${b}`)]),
  process({ token }: Draws): ToyRun {
    const a = token('A');
    const b = token(`B|${a}`);
    const calls = [call('A', 'A', a, [0, 1]), call('B', `B|${a}`, b, [2, 3], { parent: 'A' })];
    const edges: ToyRun['edges'] = [{ from: 'A', to: 'B', type: 'continue' }];
    if (b === 0) return { calls, edges, reward: drawnReward(a, b) };
    const d = token(`D|${a}${b}`);
    calls.push(call('D', `D|${a}${b}`, d, [4, 5], { parent: 'A' }));
    edges.push({ from: 'A', to: 'D', type: 'rollback' }, { from: 'B', to: 'D', type: 'rollback' });
    return { calls, edges, reward: drawnReward(a, b, d) };
  },
};

export const toys: readonly Toy[] = [
  harnessTree,
  concurrentAgents,
  interleaved,
  cutCall,
  lostReplies,
  lateSuccessor,
];
