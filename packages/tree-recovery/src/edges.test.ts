import type { Json } from '@treeward/telemetry';
import { describe, expect, it } from 'vitest';
import { edgesOf, recoverTalk, says, system, tool, user, uses, type Spoken } from './testing/talk.js';

// One block per row of recovery.md §3: what the edge is, then what fools it.
const task = user('count the lines of every file in the data folder');
const look = uses(['exec', 'ls data']);
const listing = tool('one.txt two.txt three.txt');
const count = uses(['exec', 'wc -l data/one.txt data/two.txt']);
const counted = tool('12 one.txt 30 two.txt');
const done = says('There are forty-two lines in all files together.');
const lost = { delivery: 'none', cause: 'client' } as const;
const refused = { ...lost, cause: 'gateway', status: 529 } as const;

const first: Spoken = { messages: [task], reply: look };
const second: Spoken = { messages: [task, look, listing], reply: count };
const third: Spoken = { messages: [task, look, listing, count, counted], reply: done };
const evidence = (tree: ReturnType<typeof recoverTalk>, to: number): readonly string[] =>
  tree.edges.filter((edge) => edge.to === to).flatMap((edge) => edge.evidence);

describe('continue', () => {
  it('is history, reply and something new', () => {
    const tree = recoverTalk(first, second, third);
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 continue 2']);
    expect(tree.runs.map(({ calls }) => calls)).toEqual([[0, 1, 2]]);
  });

  it('holds although the system prompt is rendered anew', () => {
    const said = (text: string, { messages, ...rest }: Spoken): Spoken => ({
      ...rest,
      messages: [system(text), ...messages],
    });
    expect(edgesOf(recoverTalk(said('Monday', first), said('Tuesday', second)))).toEqual(['0 continue 1']);
  });

  it('holds although ids of tool calls are rewritten', () => {
    const renamed: Json = {
      role: 'assistant',
      parts: [{ type: 'tool_call', id: 'other', name: 'exec', arguments: { argument: 'ls data' } }],
    };
    expect(edgesOf(recoverTalk(first, { ...second, messages: [task, renamed, listing] }))).toEqual([
      '0 continue 1',
    ]);
  });

  it('holds although the reply was trimmed, with evidence that says so', () => {
    const long = says('I will look at the folder first.   ');
    const trimmed = says('I will look at the folder first.');
    const tree = recoverTalk(
      { messages: [task], reply: long },
      { messages: [task, trimmed, listing], reply: done },
    );
    expect(edgesOf(tree)).toEqual(['0 continue 1']);
    expect(evidence(tree, 1)).toContain('reply-edited');
  });

  it('holds although the record lost the reply', () => {
    const tree = recoverTalk({ ...first, without: ['call.sampled'] }, second);
    expect(edgesOf(tree)).toEqual(['0 continue 1']);
    expect(evidence(tree, 1)).toContain('reply-lost');
  });

  it('holds in a harness that ends every request in a message that is gone from the next history', () => {
    const ending = (text: string, { messages, ...rest }: Spoken): Spoken => ({
      ...rest,
      messages: [...messages, user(`[context] ${text}`)],
    });
    const again = ending('c', { ...third, reply: says('Forty-two.') });
    const calls = [ending('a', first), ending('b', second), ending('x', { ...third, ...lost }), again];
    expect(edgesOf(recoverTalk(...calls))).toEqual(['0 continue 1', '1 continue 2', '2 retry 3']);
  });
});

describe('retry', () => {
  it.each<[string, Partial<Spoken>, string]>([
    ['was not delivered', lost, 'undelivered'],
    ['was refused', { ...refused, reply: null }, 'refused'],
    ['was malformed', { malformed: 'no end' }, 'malformed'],
    ['was never extended', {}, 'unextended'],
  ])('is the same turn again after a reply that %s', (_, more, why) => {
    const tree = recoverTalk({ ...first, ...more }, { ...first, reply: uses(['exec', 'find data']) });
    expect(edgesOf(tree)).toEqual(['0 retry 1']);
    expect(evidence(tree, 1)).toContain(why);
  });

  it('chains, and the attempt that was taken goes on', () => {
    const calls = [{ ...first, ...refused, reply: null }, { ...first, ...lost }, first, second];
    expect(edgesOf(recoverTalk(...calls))).toEqual(['0 retry 1', '1 retry 2', '2 continue 3']);
  });

  it('is found although the harness added text to the repeated request', () => {
    const queued = { ...second, messages: [...second.messages, user('queued: be quick')] };
    const tree = recoverTalk(first, { ...second, ...refused, reply: null }, queued, {
      ...third,
      messages: [...queued.messages, count, counted],
    });
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 retry 2', '2 continue 3']);
    expect(evidence(tree, 2)).toContain('volatile');
  });

  it('is ambiguous with a twin that was asked at the same time', () => {
    const twin = { ...first, start: 1, finish: 7, reply: uses(['exec', 'find data']) };
    expect(edgesOf(recoverTalk(first, twin, { ...second, start: 10 }))).toEqual([
      '0 ambiguous 1',
      '0 continue 2',
    ]);
  });

  it('is not seen where a title is asked for in the words of the task', () => {
    const title = { ...first, tools: [], reply: says('Counting lines') };
    const tree = recoverTalk(title, first, second);
    expect(edgesOf(tree)).toEqual(['1 continue 2']);
    expect(tree.calls.map(({ role }) => role)).toEqual(['side', 'main', 'main']);
  });
});

describe('rollback', () => {
  const other: Spoken = { messages: [task, look, tool('nothing at all'), user('try again')], reply: done };

  it('cuts the history to an earlier turn; it comes from the last call of what was left', () => {
    const tree = recoverTalk(first, second, third, other);
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 continue 2', '2 rollback 3']);
  });

  it('is the same turn again after it had gone on', () => {
    expect(edgesOf(recoverTalk(first, second, { ...first, reply: done }))).toEqual([
      '0 continue 1',
      '1 rollback 2',
    ]);
  });

  it('is no rollback while the other branch goes on', () => {
    const tree = recoverTalk(first, second, other, third);
    expect(edgesOf(tree)).toEqual(['0 continue 1', '0 continue 2', '1 continue 3']);
  });

  it('counts an agent that outlives its branch for nothing', () => {
    const asks = uses(['agent', 'read the second file and report its length']);
    const agent: Spoken = {
      messages: [user('read the second file and report its length')],
      reply: uses(['exec', 'wc']),
      tools: ['exec'],
    };
    const tree = recoverTalk(first, { ...second, reply: asks }, agent, other, {
      ...agent,
      messages: [...agent.messages, agent.reply!, tool('30')],
      reply: says('thirty'),
    });
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 spawn 2', '1 rollback 3', '2 continue 4']);
  });
});

describe('parallel', () => {
  const left: Spoken = { messages: [task, look, listing, user('left')], reply: count, start: 10, finish: 20 };
  const right: Spoken = { ...left, messages: [task, look, listing, user('right')], start: 12, finish: 22 };
  const goesOn = ({ messages, reply }: Spoken, at: number): Spoken => ({
    messages: [...messages, reply!, counted],
    reply: done,
    start: at,
    finish: at + 1,
  });

  it('links two branches that overlap; both continue', () => {
    const tree = recoverTalk(first, left, right, goesOn(left, 30), goesOn(right, 31));
    expect(edgesOf(tree)).toEqual([
      '0 continue 1',
      '0 continue 2',
      '1 parallel 2',
      '1 continue 3',
      '2 continue 4',
    ]);
    // Both were settled when the first of them started.
    expect([...tree.causal.lineage.successor_L.subarray(0, 2)]).toEqual([1, 2]);
  });

  it('is not seen where one comes after the other', () => {
    const late = { ...right, start: 25, finish: 26 };
    expect(edgesOf(recoverTalk(first, left, late))).toEqual(['0 continue 1', '1 rollback 2']);
  });
});

describe('compaction', () => {
  const asked = user('Summarise this conversation in a <summary> element.');
  const summary = says('<summary>The folder holds three files and two of them have been counted.</summary>');
  const goesOn = user('Continued: The folder holds three files and two of them have been counted.');

  it('of a call that continues the history (Claude Code)', () => {
    const tree = recoverTalk(
      first,
      { messages: [task, look, listing, asked], reply: summary },
      { messages: [goesOn], reply: count },
    );
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 compaction 2']);
    expect(tree.calls.map(({ role, epoch }) => [role, epoch])).toEqual([
      ['main', 0],
      ['compaction', 0],
      ['main', 1],
    ]);
  });

  it('keeps its tail and is no rewrite', () => {
    const tree = recoverTalk(
      first,
      { messages: [task, look, listing, asked], reply: summary },
      { messages: [goesOn, look, listing], reply: count },
    );
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 compaction 2']);
  });

  it('of a tool-less call of its own (OpenClaw), after a refusal', () => {
    const tree = recoverTalk(
      first,
      { ...second, reply: null, status: 400 },
      {
        messages: [system('You summarise.'), user('<conversation> count the lines ls data </conversation>')],
        reply: says('The folder holds three files and two of them have been counted.'),
        tools: [],
      },
      { messages: [goesOn], reply: count },
    );
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 compaction 2', '2 compaction 3']);
    expect(tree.calls.map(({ role }) => role)).toEqual(['main', 'main', 'compaction', 'main']);
  });

  it('needs no word that asks for it: a later history holds what was said last', () => {
    const recap = says('Three files lie in the folder and two of them have been counted so far.');
    const begins = user(
      'Where we were: Three files lie in the folder and two of them have been counted so far.',
    );
    const inside = recoverTalk(
      first,
      { messages: [task, look, listing, user('Write down where we are.')], reply: recap },
      { messages: [begins], reply: count },
    );
    expect(edgesOf(inside)).toEqual(['0 continue 1', '1 compaction 2']);
    const outside = recoverTalk(
      first,
      second,
      { messages: [user('count the lines; ls data; wc -l data/one.txt')], reply: recap, tools: [] },
      { messages: [begins], reply: done },
    );
    expect(edgesOf(outside)).toEqual(['0 continue 1', '1 compaction 2', '2 compaction 3']);
  });

  it('is found although the summary was edited', () => {
    const tree = recoverTalk(
      first,
      { messages: [task, look, listing, asked], reply: summary },
      { messages: [user('Earlier: the folder holds three files and two of them were seen.')], reply: count },
    );
    expect(edgesOf(tree)).toContain('1 compaction 2');
  });
});

describe('rewrite', () => {
  it('is a history rendered anew, replies in their order', () => {
    const tree = recoverTalk(first, second, {
      messages: [user('TASK: count lines'), look, tool('[old result removed]'), count, counted],
      reply: done,
    });
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 rewrite 2']);
  });

  it('is found although replies were merged', () => {
    const [a, b] = [says('I will look at the folder first.'), says('Now I will count the lines.')];
    const merged = says('I will look at the folder first.Now I will count the lines.');
    const tree = recoverTalk(
      { messages: [task], reply: a },
      { messages: [task, a, user('go on')], reply: b },
      { messages: [task, merged, user('and now?')], reply: done },
    );
    expect(edgesOf(tree)).toEqual(['0 continue 1', '1 rewrite 2']);
    expect(evidence(tree, 2)).toContain('merged');
  });
});

describe('spawn and return', () => {
  const [taskA, taskB] = ['read the first file and report its length', 'read the second file aloud'];
  const asks = uses(['agent', taskA], ['agent', taskB]);
  const agent = (text: string, start: number, reply = says(`Report: ${text} took a while.`)): Spoken => ({
    messages: [system('You are an agent.'), user(text)],
    reply,
    tools: ['exec'],
    start,
    finish: start + 5,
  });
  const parent: Spoken = { messages: [task], reply: asks };
  const results = [tool(`Report: ${taskA} took a while.`), tool(`Report: ${taskB} took a while.`)];
  const back: Spoken = { messages: [task, asks, ...results], reply: done, start: 40, finish: 41 };

  it('link two agents with the reply that started them and the call that holds their results', () => {
    const tree = recoverTalk(parent, agent(taskA, 10), agent(taskB, 11), back);
    expect(edgesOf(tree)).toEqual([
      '0 spawn 1',
      '0 spawn 2',
      '1 parallel 2',
      '0 continue 3',
      '1 return 3',
      '2 return 3',
    ]);
    expect(tree.calls.map(({ role, agent: number }) => [role, number])).toEqual([
      ['main', 0],
      ['subagent', 1],
      ['subagent', 2],
      ['main', 0],
    ]);
    const { offset_C1, successor_L } = tree.causal.lineage;
    expect([...offset_C1]).toEqual([0, 2, 3, 4, 4]);
    expect([...successor_L]).toEqual([1, 2, 3, 3]);
  });

  it('is found where results were cut', () => {
    const cut = [tool('Report: read the first file and rep… [cut]'), tool('Report: read the second')];
    const tree = recoverTalk(parent, agent(taskA, 10), agent(taskB, 11), {
      ...back,
      messages: [task, asks, ...cut],
    });
    expect(edgesOf(tree).filter((edge) => edge.includes('return'))).toEqual(['1 return 3', '2 return 3']);
    expect(evidence(tree, 3)).toContain('result-part');
  });

  it('waits for the notification of an agent in the background', () => {
    const started = [tool('The agent was started.'), tool('The agent was started.')];
    const goesOn: Spoken = {
      ...back,
      messages: [task, asks, ...started],
      reply: look,
      start: 20,
      finish: 21,
    };
    const told: Spoken = {
      messages: [
        ...goesOn.messages,
        look,
        listing,
        user(`An agent has finished: Report: ${taskA} took a while.`),
      ],
      reply: done,
      start: 40,
      finish: 41,
    };
    const tree = recoverTalk(parent, agent(taskA, 10), agent(taskB, 11), goesOn, told);
    expect(edgesOf(tree).filter((edge) => edge.includes('return'))).toEqual(['1 return 4']);
  });

  it('tells two agents with the same task apart from one that was asked twice', () => {
    const twice = uses(['agent', taskA], ['agent', taskA]);
    const tree = recoverTalk({ ...parent, reply: twice }, agent(taskA, 10), agent(taskA, 11));
    expect(edgesOf(tree)).toEqual(['0 spawn 1', '0 spawn 2', '1 parallel 2']);
  });

  it('nests', () => {
    const inner = uses(['agent', 'check the encoding of the file']);
    const tree = recoverTalk(
      { ...parent, reply: uses(['agent', taskA]) },
      agent(taskA, 10, inner),
      agent('check the encoding of the file', 20, says('The encoding is fine.')),
      {
        messages: [system('You are an agent.'), user(taskA), inner, tool('The encoding is fine.')],
        reply: says('All is well with it.'),
        tools: ['exec'],
      },
      { messages: [task, uses(['agent', taskA]), tool('All is well with it.')], reply: done },
    );
    expect(edgesOf(tree)).toEqual([
      '0 spawn 1',
      '1 spawn 2',
      '1 continue 3',
      '2 return 3',
      '0 continue 4',
      '3 return 4',
    ]);
  });

  it('uses headers where the words say nothing, and says so', () => {
    const child: Spoken = {
      ...agent('something else altogether', 10),
      identity: { session: 's', agent: 'a1' },
    };
    const main = { identity: { session: 's' } };
    const tree = recoverTalk({ ...parent, ...main }, child, { ...back, ...main });
    expect(evidence(tree, 1)).toEqual(['header-agent', 'in-tool']);
  });

  it('does not believe a header that the words contradict, and leaves an issue', () => {
    const tree = recoverTalk(
      { ...parent, identity: { session: 's' } },
      { ...agent(taskA, 10), identity: { session: 's', requestClass: 'main' } },
    );
    expect(edgesOf(tree)).toEqual(['0 spawn 1']);
    expect(evidence(tree, 1)).toContain('header-against');
    expect(tree.issues).toMatchObject([{ severity: 'warn', code: 'TREE_HEADER', call: 1 }]);
  });
});

describe('side', () => {
  const title: Spoken = {
    messages: [system('Give a title.'), user('count the lines')],
    reply: says('Lines'),
    tools: [],
  };

  it('has no part in anything', () => {
    const tree = recoverTalk(first, title, second);
    expect(tree.calls[1]).toMatchObject({ role: 'side' });
    expect(edgesOf(tree)).toEqual(['0 continue 2']);
    expect([...tree.causal.chain.successor_L]).toEqual([2]);
  });

  it('is not seen in a harness whose calls have no tools at all', () => {
    const bare = [first, second].map((call) => ({ ...call, tools: [] }));
    expect(recoverTalk(...bare).calls.map(({ role }) => role)).toEqual(['main', 'main']);
  });
});

it('gives a tree to a record without any prompt ids: untrained, with the reason', () => {
  const bare = [first, second, third].map((call): Spoken => ({ ...call, without: ['call.prompt'] }));
  const tree = recoverTalk(...bare);
  expect(edgesOf(tree)).toEqual(['0 continue 1', '1 continue 2']);
  expect(new Set(tree.calls.map(({ untrained }) => untrained))).toEqual(new Set(['no prompt recorded']));
});
