import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyPreset, presets } from '../presets.js';
import { recoverTree } from '../recover.js';
import { randomRecord } from '../testing/random-record.js';
import { RecordBuilder } from '../testing/record-builder.js';
import { recoverTalk, says, tool, user, uses, type Spoken } from '../testing/talk.js';
import { treeToDot } from './dot.js';
import { importAtif } from './from-atif.js';
import { trainedSegments } from './segments.js';
import { treeToAtif } from './to-atif.js';
import { treeToRecord } from './to-record.js';

const task = user('count the lines of every file');
const asks = uses(['agent', 'read the first file and report its length']);
const agent: Spoken = {
  messages: [user('read the first file and report its length')],
  reply: says('It has twelve lines in all.'),
  tools: ['exec'],
};
const back: Spoken = { messages: [task, asks, tool('It has twelve lines in all.')], reply: says('Twelve.') };
const rollout: Spoken[] = [
  { messages: [task], reply: says('<call>'), malformed: 'x' },
  { messages: [task], reply: asks },
  agent,
  back,
];

describe('treeToRecord', () => {
  it('8: recover(export(recover(x))) = recover(x)', () => {
    fc.assert(
      fc.property(randomRecord(), fc.boolean(), ({ builder }, twice) => {
        const record = builder.record(twice ? [...builder.events, ...builder.events] : builder.events);
        const tree = recoverTree(record);
        const exported = treeToRecord(tree, record);
        expect(exported.events.length).toBe(builder.events.length);
        expect(recoverTree(exported)).toEqual(tree);
      }),
      { numRuns: 150 },
    );
  });
});

describe('trainedSegments', () => {
  it('5: holds every trained token once, whatever else the rollout holds', () => {
    fc.assert(
      fc.property(randomRecord(), ({ builder, calls }) => {
        const tree = recoverTree(builder.record());
        const segments = trainedSegments(tree);
        const trained = tree.calls.filter(({ untrained }) => untrained === null);
        expect(segments.map(({ call }) => call)).toEqual(
          tree.verdict.kind === 'rejected' ? [] : trained.map(({ call }) => call),
        );
        for (const { call, tokens } of segments) expect(tokens).toEqual(calls[call]!.reply);
        // One more branch changes nothing for the others.
        builder.call({ call: calls.length, start: 1e5, finish: 1e5 + 1, prompt: [77], reply: [78] });
        const more = trainedSegments(recoverTree(builder.record()));
        expect(more.filter(({ call }) => call !== calls.length)).toEqual(
          tree.verdict.kind === 'rejected' ? [] : segments,
        );
      }),
      { numRuns: 100 },
    );
  });
});

describe('treeToAtif', () => {
  it('writes one document per branch, agents inside, and marks what is shown twice', () => {
    const tree = recoverTalk(...rollout);
    const builder = new RecordBuilder();
    rollout.forEach(({ messages, reply, ...rest }, call) =>
      builder.call({
        call,
        start: call,
        finish: call,
        prompt: [],
        reply: [1],
        ...rest,
        messages: { parent: null, kept: 0, appended: messages },
        parts: (reply as { parts: never[] }).parts,
      }),
    );
    const documents = treeToAtif(tree, builder.record());
    expect(documents).toHaveLength(1);
    const [main] = documents;
    expect(main!.steps.map(({ step_id }) => step_id)).toEqual(main!.steps.map((_, i) => i + 1));
    expect(
      main!.steps.filter(({ source }) => source === 'agent').map(({ extra }) => extra?.['call']),
    ).toContain(0);
    expect(main!.subagent_trajectories!.map(({ trajectory_id }) => trajectory_id)).toEqual(['r1/1/2']);
    const imported = importAtif(JSON.parse(JSON.stringify(main)));
    expect(imported.replies.length).toBeGreaterThan(2);
    expect(imported.agents).toHaveLength(1);
    expect(imported.lost[0]).toContain('a document is one line');
  });

  it('is refused where it is none', () => {
    expect(() => importAtif({ steps: 'no' })).toThrow(expect.objectContaining({ code: 'TREE_E_ATIF' }));
  });

  it('says on import which replies cannot train', () => {
    const step = { step_id: 1, source: 'agent', message: 'hello' };
    const { lost, messages } = importAtif({ steps: [step] });
    expect(messages).toEqual([{ role: 'assistant', parts: [{ type: 'text', text: 'hello' }] }]);
    expect(lost).toContain('the sampled ids of 1 replies: they cannot train');
  });
});

describe('treeToDot', () => {
  it('has a box per call and an arrow per edge', () => {
    const tree = recoverTalk(...rollout);
    const dot = treeToDot(tree);
    expect(dot.match(/ {4}c\d+ \[/g)).toHaveLength(tree.calls.length);
    expect(dot.match(/->/g)).toHaveLength(tree.edges.length);
    expect(dot).toContain('label="agent 1"');
  });
});

describe('presets', () => {
  it('treeward leaves out side calls only; clawgym2 keeps the longest path of each epoch', () => {
    const title: Spoken = { messages: [user('a title')], reply: says('Title'), tools: [] };
    const tree = recoverTalk(...rollout, title);
    const reasons = (name: keyof typeof presets) =>
      applyPreset(tree, presets[name]).calls.map(({ untrained }) => untrained);
    expect(reasons('treeward')).toEqual([null, null, null, null, 'side call']);
    expect(reasons('clawgym2')).toEqual([
      'clawgym2: not on the longest path of its epoch',
      null,
      'clawgym2: subagent call',
      null,
      'clawgym2: side call',
    ]);
    expect(applyPreset(tree, presets.treeward).verdict.kind).toBe('partial');
  });

  it('clawgym2 rejects a rollout with too many leaves', () => {
    const attempts = Array.from({ length: 20 }, (_, i): Spoken => ({
      messages: [task],
      reply: says(`attempt ${i}`),
    }));
    const { verdict } = applyPreset(recoverTalk(...attempts), presets.clawgym2);
    expect(verdict).toEqual({ kind: 'rejected', reason: 'clawgym2: 20 leaves, at most 16 are used' });
  });
});
