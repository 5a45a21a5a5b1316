import { describe, expect, it } from 'vitest';
import { confidenceOf } from './calibration.js';
import { recoverTree } from './recover.js';
import { RecordBuilder, type BuiltCall } from './testing/record-builder.js';
import type { RolloutTree } from './types.js';

const user = (text: string) => ({ role: 'user', text });
const text = (value: string) => [{ type: 'text', text: value }];

/** Call 0: prompt 1 2, reply 3 4; messages [go] and the reply `first`. */
const first: BuiltCall = {
  call: 0,
  start: 1,
  finish: 2,
  prompt: [1, 2],
  reply: [3, 4],
  messages: { parent: null, kept: 0, appended: [user('go')] },
  parts: text('first'),
};
/** The same request again, stored as the gateway stores it. */
const again: BuiltCall = {
  ...first,
  call: 1,
  start: 3,
  finish: 4,
  reply: [3, 5],
  from: { parent: 0, kept: 2, reason: 'same-prompt' },
  messages: { parent: 0, kept: 1, appended: [] },
  parts: text('second'),
};
/** Goes on after the reply of call `parent`, whose own reply tokens are given. */
const goesOn = (call: number, parent: number, reply: number[], more: Partial<BuiltCall> = {}): BuiltCall => ({
  call,
  start: 10 * call,
  finish: 10 * call + 1,
  prompt: [1, 2, ...reply, 6],
  reply: [7],
  from: { parent, kept: 2 + reply.length, reason: 'reply' },
  messages: { parent, kept: 2, appended: [user('result')] },
  ...more,
});

const recover = (...calls: BuiltCall[]): RolloutTree => {
  const builder = new RecordBuilder();
  for (const call of calls) builder.call(call);
  return recoverTree(builder.end().record());
};
const edges = (tree: RolloutTree) => tree.edges.map(({ from, to, type }) => [from, to, type]);
const call = (tree: RolloutTree, number: number) => tree.calls.find((one) => one.call === number)!;
/** The calls whose replies a prompt passes through, oldest first. */
const passes = (tree: RolloutTree, number: number): number[] => {
  const out: number[] = [];
  for (let n = call(tree, number).promptNode; n !== -1; n = tree.nodes.parent_N[n]!) {
    if (tree.nodes.kind_N[n] === 1) out.unshift(tree.calls.find((one) => one.actionNode === n)!.call);
  }
  return out;
};

describe('continue', () => {
  it('is found by tokens and by messages, and the graft agrees', () => {
    const tree = recover(first, goesOn(1, 0, [3, 4]));
    expect(tree.edges).toEqual([
      {
        from: 0,
        to: 1,
        type: 'continue',
        confidence: confidenceOf('continue', ['messages', 'tokens', 'graft']),
        evidence: ['messages', 'tokens', 'graft'],
      },
    ]);
    expect(passes(tree, 1)).toEqual([0]);
    expect([...tree.tokens_T]).toEqual([1, 2, 3, 4, 6, 7]);
    expect(tree.verdict).toEqual({ kind: 'trainable', reason: null });
  });

  it('is found from full messages and a full prompt, without any claim of the gateway', () => {
    const { from: _, ...bare } = goesOn(1, 0, [3, 4]);
    const appended = [user('go'), { role: 'assistant', parts: text('first') }, user('result')];
    const tree = recover(first, { ...bare, messages: { parent: null, kept: 0, appended } });
    expect(tree.edges.map(({ evidence }) => evidence)).toEqual([['messages', 'tokens']]);
    expect(passes(tree, 1)).toEqual([0]);
  });

  it('is found by messages alone when the history was tokenised anew', () => {
    const tree = recover(first, {
      ...goesOn(1, 0, []),
      prompt: [1, 2, 33, 44, 6],
      from: { parent: 0, kept: 2, reason: 'rewritten' },
    });
    expect(edges(tree)).toEqual([[0, 1, 'continue']]);
    expect(tree.edges[0]!.evidence).toEqual(['messages', 'tokens-renewed']);
    expect(passes(tree, 1)).toEqual([]);
  });

  it('trusts messages over a graft on the wrong call, with less confidence', () => {
    const tree = recover(
      first,
      { ...again, delivery: 'complete' },
      goesOn(2, 0, [3, 4], { messages: { parent: 1, kept: 2, appended: [user('result')] } }),
    );
    const last = tree.edges.find(({ to }) => to === 2)!;
    expect([last.from, last.type]).toEqual([1, 'continue']);
    expect(last.evidence).toContain('graft-elsewhere');
    expect(call(tree, 2).untrained).toBeNull();
  });
});

describe('retry', () => {
  it('of a reply that did not arrive: both are trained, both are kept apart', () => {
    const tree = recover({ ...first, delivery: 'none', cause: 'client' }, again, goesOn(2, 1, [3, 5]));
    expect(edges(tree)).toEqual([
      [0, 1, 'retry'],
      [1, 2, 'continue'],
    ]);
    expect(tree.edges[0]!.evidence.at(-1)).toBe('undelivered');
    expect(tree.calls.map(({ untrained }) => untrained)).toEqual([null, null, null]);
    expect(call(tree, 0).promptNode).toBe(call(tree, 1).promptNode);
  });

  it('of a malformed reply', () => {
    const tree = recover({ ...first, malformed: 'no end' }, again);
    expect(tree.edges[0]).toMatchObject({
      from: 0,
      to: 1,
      type: 'retry',
      evidence: ['same-messages', 'same-tokens', 'malformed'],
    });
    expect(call(tree, 0)).toMatchObject({ malformed: true, untrained: null });
  });

  it('of a last attempt that nothing ever extended', () => {
    expect(recover(first, again).edges[0]).toMatchObject({
      type: 'retry',
      evidence: ['same-messages', 'same-tokens', 'unextended'],
    });
  });

  it('is a rollback when the earlier reply was extended, ambiguous when it is extended still or the two overlap', () => {
    const late = { ...again, call: 6, start: 60, finish: 61 };
    const branch = goesOn(5, 0, [3, 4]);
    expect(edges(recover(first, branch, late))).toEqual([
      [0, 5, 'continue'],
      [5, 6, 'rollback'],
    ]);
    const still = goesOn(7, 0, [3, 4], {
      prompt: [1, 2, 3, 4, 6, 7, 8],
      from: { parent: 5, kept: 6, reason: 'reply' },
      messages: { parent: 5, kept: 4, appended: [user('more')] },
    });
    expect(edges(recover(first, branch, late, still))).toEqual([
      [0, 5, 'continue'],
      [0, 6, 'ambiguous'],
      [5, 7, 'continue'],
    ]);
    const overlapping = recover(first, { ...again, start: 1.5, finish: 2.5 });
    expect(edges(overlapping)).toEqual([[0, 1, 'ambiguous']]);
  });

  it('chains over several attempts', () => {
    const lost = { delivery: 'none', cause: 'client' } as const;
    const tree = recover(
      { ...first, ...lost },
      { ...again, ...lost },
      { ...again, call: 2, start: 5, finish: 6 },
    );
    expect(edges(tree)).toEqual([
      [0, 1, 'retry'],
      [1, 2, 'retry'],
    ]);
  });
});

describe('equal replies to one prompt', () => {
  const equalReply = { ...again, reply: [3, 4], parts: text('first') };

  it('stay two draws', () => {
    const tree = recover(first, equalReply);
    expect([...tree.nodes.kind_N]).toEqual([0, 1, 1]);
    expect([...tree.tokens_T]).toEqual([1, 2, 3, 4, 3, 4]);
  });

  it('are told apart by delivery, against the graft', () => {
    const tree = recover({ ...first, delivery: 'none', cause: 'client' }, equalReply, goesOn(2, 0, [3, 4]));
    expect(passes(tree, 2)).toEqual([1]);
    expect(edges(tree).at(-1)).toEqual([1, 2, 'continue']);
  });

  it('are told apart by what the messages keep, then by the graft', () => {
    const byMessages = goesOn(2, 1, [3, 4], { messages: { parent: 0, kept: 2, appended: [user('result')] } });
    expect(passes(recover(first, equalReply, byMessages), 2)).toEqual([0]);
    const nothingSaid = { parent: null, kept: 0, appended: [user('rewritten')] };
    const byGraft = goesOn(2, 0, [3, 4], { messages: nothingSaid });
    expect(passes(recover(first, equalReply, byGraft), 2)).toEqual([0]);
  });

  it('otherwise belong to the latest that had finished', () => {
    const { from: _, ...bare } = goesOn(2, 0, [3, 4], {
      messages: { parent: null, kept: 0, appended: [user('rewritten')] },
    });
    expect(passes(recover(first, equalReply, bare), 2)).toEqual([1]);
    expect(passes(recover(first, { ...equalReply, finish: 25 }, bare), 2)).toEqual([0]);
  });
});

it('of equal replies prefers the one that was continued before', () => {
  const rewritten = { messages: { parent: null, kept: 0, appended: [user('rewritten')] } };
  const { from: _, ...bare } = goesOn(3, 0, [3, 4], { ...rewritten, prompt: [1, 2, 3, 4, 8] });
  const equalReply = { ...again, reply: [3, 4], parts: text('first') };
  const tree = recover(first, equalReply, goesOn(2, 0, [3, 4], rewritten), bare);
  expect(passes(tree, 3)).toEqual([0]);
});

it('has no logprob at all where not every token has one', () => {
  const tree = recover({ ...first, logprobs: 'short' });
  expect([...tree.logprobs_T]).toEqual([Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
});

it('holds a reply that is repeated only in part as an observation', () => {
  const tree = recover(first, {
    ...goesOn(1, 0, []),
    prompt: [1, 2, 3, 8],
    from: { parent: 0, kept: 3, reason: 'prefix' },
    messages: { parent: 0, kept: 1, appended: [user('cut')] },
  });
  expect(passes(tree, 1)).toEqual([]);
  expect([...tree.nodes.kind_N]).toEqual([0, 1, 0, 1]);
  expect([...tree.nodes.parent_N]).toEqual([-1, 0, 0, 2]);
  expect([...tree.tokens_T]).toEqual([1, 2, 3, 4, 3, 8, 7]);
  expect(tree.edges).toEqual([]);
});

it('splits a shared observation where prompts part', () => {
  const other = { messages: { parent: null, kept: 0, appended: [user('other')] } };
  const tree = recover(
    { ...first, prompt: [1, 2, 3, 4, 5], reply: [9] },
    { ...first, ...other, call: 1, start: 3, finish: 4, prompt: [1, 2, 3, 7], reply: [9] },
    { ...first, call: 2, start: 5, finish: 6, prompt: [1, 2], reply: [9], messages: other.messages },
  );
  expect([...tree.nodes.parent_N]).toEqual([-1, 0, 1, 2, 1, 4, 0]);
  expect([...tree.nodes.depth_N]).toEqual([0, 2, 3, 5, 3, 4, 2]);
  expect([...tree.tokens_T]).toEqual([1, 2, 3, 4, 5, 9, 7, 9, 9]);
});

describe('damage', () => {
  it('a prompt whose hash does not fit is fatal for its own call', () => {
    const tree = recover(first, goesOn(1, 0, [3, 4], { hash: 'other' }));
    expect(tree.issues).toMatchObject([{ severity: 'fatal', code: 'TREE_HASH_MISMATCH', call: 1 }]);
    expect(tree.calls.map(({ untrained }) => untrained)).toEqual([null, 'prompt hash mismatch']);
    expect(tree.verdict).toEqual({
      kind: 'partial',
      reason: '1 of 2 calls left out: prompt hash mismatch',
    });
  });

  it('a prompt that keeps what the record lost is not recoverable, nor what grew from it', () => {
    const tree = recover(
      { ...first, without: ['call.prompt'] },
      goesOn(1, 0, [3, 4]),
      goesOn(2, 1, [3, 4, 6, 7]),
    );
    expect(tree.calls.map(({ untrained }) => untrained)).toEqual([
      'no prompt recorded',
      'prompt not recoverable',
      'prompt not recoverable',
    ]);
    expect(tree.verdict).toEqual({ kind: 'rejected', reason: 'no call can be trained' });
    // The messages still say what continued what.
    expect(edges(tree).slice(0, 1)).toEqual([[0, 1, 'continue']]);
  });

  it('sampled ids that lie outside leave the call without a node and its successors unknown', () => {
    const builder = new RecordBuilder()
      .call(first)
      .call(goesOn(1, 0, [3, 4]))
      .end();
    const events = builder.events.map((event) =>
      event.type === 'call.sampled' && event.call === 0
        ? { ...event, tokens: { offset: 2 ** 40, count: 2 } }
        : event,
    );
    const tree = recoverTree(builder.record(events));
    expect(tree.calls.map(({ actionNode, untrained }) => [actionNode, untrained])).toEqual([
      [-1, 'sampled tokens missing'],
      [-1, 'prompt not recoverable'],
    ]);
  });

  it('events that contradict each other make their call untrained', () => {
    const builder = new RecordBuilder().call(first).end();
    const end = builder.events.find((event) => event.type === 'call.end')!;
    const other = { ...end, status: 500, delivery: 'partial' } as typeof end;
    const tree = recoverTree(builder.record([...builder.events, other]));
    expect(recoverTree(builder.record([other, ...builder.events]))).toEqual(tree);
    expect(tree.issues).toMatchObject([{ severity: 'fatal', code: 'TREE_CONFLICT', call: 0 }]);
    expect(call(tree, 0).untrained).toBe('the record contradicts itself about this call');
  });

  it('a call that grows out of itself is reported, not followed', () => {
    const tree = recover(
      { ...first, from: { parent: 1, kept: 1 } },
      { ...first, call: 1, from: { parent: 0, kept: 1 } },
    );
    expect(tree.issues.map(({ code }) => code)).toContain('TREE_PARENT_CYCLE');
    expect(tree.calls.map(({ untrained }) => untrained)).toEqual([
      'prompt not recoverable',
      'prompt not recoverable',
    ]);
  });

  it('parents come first even when clocks say otherwise, over a long chain', () => {
    const length = 20_000;
    const builder = new RecordBuilder();
    for (let i = 0; i < length; i++) {
      builder.call({
        call: i,
        start: length - i,
        finish: length - i + 0.5,
        prompt: Array.from({ length: Math.min(i, 1) + 1 }, () => 1),
        reply: null,
        ...(i > 0 ? { from: { parent: i - 1, kept: 1 } } : {}),
        messages: { parent: i > 0 ? i - 1 : null, kept: 0, appended: [] },
      });
    }
    const tree = recoverTree(builder.record());
    expect(tree.calls.every(({ untrained }) => untrained === 'nothing sampled')).toBe(true);
  });
});

describe('why a call does not train', () => {
  const reason = (more: Partial<BuiltCall>) => recover({ ...first, ...more }).calls[0]!.untrained;
  it.each<[string, Partial<BuiltCall>, string | null]>([
    ['all is well', {}, null],
    ['the client gave up on it', { delivery: 'none', cause: 'client' }, null],
    ['the client cut it', { delivery: 'partial', cause: 'client' }, null],
    ['it is malformed', { malformed: 'x' }, null],
    ['the gateway lost it', { delivery: 'none', cause: 'gateway' }, 'reply lost by the gateway'],
    ['the engine lost it', { delivery: 'partial', cause: 'engine' }, 'reply lost by the engine'],
    ['the gateway ended it after it had arrived', { cause: 'gateway' }, null],
    ['it has no end', { without: ['call.end'] }, 'no call.end: the gateway died during this call'],
    ['it has no prompt', { without: ['call.prompt'] }, 'no prompt recorded'],
    ['it sampled nothing', { reply: null }, 'nothing sampled'],
    ['it sampled no token', { reply: [] }, 'nothing sampled'],
    [
      'the engine failed before',
      { reply: null, delivery: 'none', cause: 'engine' },
      'reply lost by the engine',
    ],
    ['a logprob is NaN', { logprobs: 'nan' }, 'logprobs not usable'],
    ['a logprob is missing', { logprobs: 'short' }, 'logprobs missing'],
    ['logprobs lie outside', { logprobs: 'lost' }, 'logprobs missing'],
    ['the policy is unknown', { version: -1 }, 'policy version unknown'],
    ['the sampling is unknown', { temperature: null }, 'sampling unknown'],
    ['it was greedy', { temperature: 0 }, 'sampled greedily'],
  ])('%s', (_, more, expected) => {
    expect(reason(more)).toBe(expected);
  });
});

describe('verdict', () => {
  it('rejects what has no reward, whatever the reason', () => {
    const builder = new RecordBuilder().call(first);
    expect(recoverTree(builder.record()).verdict).toEqual({ kind: 'rejected', reason: 'no reward' });
    builder.events.push({
      type: 'verifier',
      time: 9,
      reward: null,
      scores: {},
      error: { code: 'VERIFIER_E_X', message: 'no number' },
    });
    const failed = recoverTree(builder.record());
    expect(failed.verdict.reason).toBe('no reward: VERIFIER_E_X: no number');
    expect(failed.reward).toBeNull();
    builder.events.push({ type: 'verifier', time: 10, reward: 0, scores: {} });
    expect(recoverTree(builder.record())).toMatchObject({ reward: 0, verdict: { kind: 'trainable' } });
    expect(recoverTree(builder.record(builder.events.toReversed())).reward).toBe(0);
    builder.events.push({ type: 'rollout.end', time: 11, status: 'cancelled' });
    expect(recoverTree(builder.record()).verdict.reason).toBe('the rollout was cancelled');
  });

  it('rejects what sampled nothing', () => {
    expect(recover({ ...first, reply: null }).verdict.reason).toBe('no tokens were sampled');
  });
});
