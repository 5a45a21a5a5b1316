import { describe, expect, it } from 'vitest';
import { describeTree, treeToJson } from './describe.js';
import { recoverTree } from './recover.js';
import { RecordBuilder } from './testing/record-builder.js';

const builder = new RecordBuilder()
  .call({ call: 0, start: 1000, finish: 2000, prompt: [1, 2], reply: [3], delivery: 'none', cause: 'client' })
  .call({
    call: 1,
    start: 3500,
    finish: 4000,
    prompt: [1, 2],
    reply: [4, 5],
    malformed: 'no end',
    temperature: null,
    messages: { parent: 0, kept: 1, appended: [] },
  })
  .call({ call: 2, start: 5000, finish: 6000, prompt: [1, 9], reply: null, hash: 'x' });
const tree = recoverTree(builder.end(0.5).record());

describe('describeTree', () => {
  it('shows every call, where it came from, and why it does not train', () => {
    // The confidence is as measured at the time.
    expect(describeTree(tree).replace(/retry [01]\.\d\d/, 'retry 0.99')).toMatchInlineSnapshot(`
      "rollout r1  task=t
      completed, reward 0.5, partial: 1 of 2 calls left out: sampling unknown
      3 calls, 2 leaves, 5 nodes, 6 tokens; 1 of 3 sampled tokens train; edges: 1 retry

      call  at     role  agent  epoch  prompt  sampled  version  delivery             from        trains
      0     0.00s  main  0      0      2       1        0        none                 -           yes
      1     2.50s  main  0      0      2       2        0        complete, malformed  retry of 0  no: sampling unknown
      2     4.00s  main  1      1      2       -        -        complete             -           no: prompt hash mismatch

      edges
        0 -> 1  retry 0.99  the same messages again; the same prompt tokens again; the earlier reply did not arrive

      issues
        fatal  TREE_HASH_MISMATCH  the prompt of call 2 (2 ids, hash x) was put together as 2 ids with hash e457799fb7d91275-2"
    `);
  });

  it('has a line even for an empty record', () => {
    expect(describeTree(recoverTree(new RecordBuilder().record([])))).toContain('rollout (no id)');
  });
});

describe('treeToJson', () => {
  it('survives JSON and holds what the table says', () => {
    const json = treeToJson(tree);
    expect(JSON.parse(JSON.stringify(json))).toEqual(json);
    expect(json).toMatchObject({
      rolloutId: 'r1',
      reward: 0.5,
      summary: { calls: 3, trainedCalls: 1, sampledTokens: 3, trainedTokens: 1, edges: { retry: 1 } },
      calls: [
        { call: 0, untrained: null, promptTokens: 2, sampledTokens: 1 },
        { call: 1, untrained: 'sampling unknown', temperature: null },
        { call: 2, untrained: 'prompt hash mismatch', sampledTokens: 0 },
      ],
    });
  });
});
