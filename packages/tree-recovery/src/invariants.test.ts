import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecordEvent, Span } from '@treeward/telemetry';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { causalAdvantages } from './causal-advantages.js';
import { causalOrders } from './causal-order.js';
import { trainedSegments } from './export/segments.js';
import { applyPreset, presets } from './presets.js';
import { recoverTree } from './recover.js';
import { chainRecord } from './testing/chain-record.js';
import { randomRecord, storedTwice, type RandomRecord } from './testing/random-record.js';
import { RecordBuilder, type BuiltCall } from './testing/record-builder.js';
import { readTree, writeTree } from './tree-file.js';
import type { RolloutTree } from './types.js';

// The invariants of recovery.md §6 that hold for what is recovered now, by their numbers there.
const runs = { numRuns: 150 };
const directory = mkdtempSync(join(tmpdir(), 'treeward-invariants-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const recover = ({ builder }: RandomRecord): RolloutTree => recoverTree(builder.record());
const spanOf = ({ nodes, tokens_T }: RolloutTree, n: number): number[] => [
  ...tokens_T.subarray(nodes.start_N[n], nodes.end_N[n]),
];
function pathOf(tree: RolloutTree, node: number): number[] {
  const path: number[] = [];
  for (let n = node; n !== -1; n = tree.nodes.parent_N[n]!) path.unshift(...spanOf(tree, n));
  return path;
}
const sampledIn = (call: BuiltCall): boolean => call.reply !== null && call.reply.length > 0;

describe('recoverTree', () => {
  it('1: keeps every call faithful: its path is its prompt, its action its reply', () => {
    fc.assert(
      fc.property(randomRecord(), (random) => {
        const tree = recover(random);
        expect(tree.calls).toHaveLength(random.calls.length);
        for (const call of tree.calls) {
          const truth = random.calls[call.call]!;
          expect(pathOf(tree, call.promptNode)).toEqual(truth.prompt);
          expect(call.actionNode !== -1).toBe(sampledIn(truth));
          if (call.actionNode === -1) continue;
          expect(spanOf(tree, call.actionNode)).toEqual(truth.reply);
          expect(tree.nodes.parent_N[call.actionNode]).toBe(call.promptNode);
        }
        expect(tree.issues.filter(({ severity }) => severity === 'fatal')).toEqual([]);
      }),
      runs,
    );
  });

  it('2, 11: stores every sampled token once, owned by one action node; equal draws stay two', () => {
    fc.assert(
      fc.property(randomRecord(), (random) => {
        const tree = recover(random);
        const { kind_N, parent_N, start_N, end_N, depth_N } = tree.nodes;
        const owners = tree.calls.filter((call) => call.actionNode !== -1).map((call) => call.actionNode);
        expect(new Set(owners).size).toBe(owners.length);
        expect([...kind_N].flatMap((kind, n) => (kind === 1 ? [n] : [])).sort()).toEqual([...owners].sort());
        expect(owners).toHaveLength(random.calls.filter(sampledIn).length);
        // The spans of the nodes are the tokens, one after the other.
        expect([...start_N]).toEqual([0, ...end_N].slice(0, -1));
        expect(end_N.at(-1) ?? 0).toBe(tree.tokens_T.length);
        const firstTokens = new Set<string>();
        for (let n = 0; n < kind_N.length; n++) {
          const parent = parent_N[n]!;
          expect(parent).toBeLessThan(n);
          expect(end_N[n]!).toBeGreaterThan(start_N[n]!);
          const above = parent === -1 ? 0 : depth_N[parent]! + end_N[parent]! - start_N[parent]!;
          expect(depth_N[n]).toBe(above);
          if (kind_N[n] === 1) continue;
          // Observations are shared as far as they agree.
          const edge = `${parent}:${tree.tokens_T[start_N[n]!]}`;
          expect(firstTokens.has(edge)).toBe(false);
          firstTokens.add(edge);
          expect(tree.logprobs_T.subarray(start_N[n], end_N[n]).every(Number.isNaN)).toBe(true);
        }
      }),
      runs,
    );
  });

  it('3: does not depend on the order of events, nor on where the numbering begins', () => {
    fc.assert(
      fc.property(randomRecord(), fc.infiniteStream(fc.nat()), (random, stream) => {
        const draw = (n: number): number => Number(stream.next().value) % n;
        const shuffled = <T>(items: readonly T[]): T[] => {
          const out = [...items];
          for (let i = out.length - 1; i > 0; i--) {
            const j = draw(i + 1);
            [out[i], out[j]] = [out[j]!, out[i]!];
          }
          return out;
        };
        // Numbers count arrivals; which numbers they are does not matter.
        const names = random.calls.map(({ call }) => 3 * call + 100);
        const rename = (call: number | null): number | null => (call === null ? null : names[call]!);
        const renamed = random.builder.events.map((event): RecordEvent => {
          if (!('call' in event) || event.call === null) return event;
          const named = { ...event, call: names[event.call]! };
          if (named.type === 'call.start') {
            named.messages = { ...named.messages, parent: rename(named.messages.parent) };
          }
          if (named.type === 'call.prompt') {
            named.prompt = { ...named.prompt, parent: rename(named.prompt.parent) };
          }
          return named;
        });
        const tree = recover(random);
        const other = recoverTree(random.builder.record(shuffled(renamed)));
        const back = (call: number): number => names.indexOf(call);
        const named = { calls: [], edges: [], issues: [], runs: [], epochs: [] };
        expect({ ...other, ...named }).toEqual({ ...tree, ...named });
        expect(other.runs.map(({ calls }) => calls.map(back))).toEqual(tree.runs.map(({ calls }) => calls));
        expect(other.epochs.map(({ calls }) => calls.map(back))).toEqual(
          tree.epochs.map(({ calls }) => calls),
        );
        expect(other.calls.map((call) => ({ ...call, call: back(call.call) }))).toEqual(tree.calls);
        const bare = ({ from, to, type, confidence }: RolloutTree['edges'][number]) => [
          from,
          to,
          type,
          confidence,
        ];
        expect(
          other.edges.map((edge) => bare({ ...edge, from: back(edge.from), to: back(edge.to) })),
        ).toEqual(tree.edges.map(bare));
      }),
      runs,
    );
  });

  it('4: is not changed by a record that was written twice', () => {
    fc.assert(
      fc.property(randomRecord(), fc.array(fc.nat(), { maxLength: 20 }), (random, picks) => {
        const events = [...random.builder.events, ...random.builder.events];
        for (const pick of picks) events.splice(pick % events.length, 0, events[(pick * 7) % events.length]!);
        expect(recoverTree(random.builder.record(events))).toEqual(recover(random));
      }),
      runs,
    );
  });

  it('4: is not changed for the others by one more call outside the work', () => {
    fc.assert(
      fc.property(randomRecord(), fc.nat(), ({ calls }, when) => {
        // Even numbers for the work, so that the side call can arrive anywhere in between.
        const number = (call: number): number => 2 * call;
        const build = (side: BuiltCall | null): RolloutTree => {
          const builder = new RecordBuilder();
          for (const { from, messages, ...call } of calls) {
            const parent = messages?.parent ?? null;
            builder.call({
              ...call,
              call: number(call.call),
              tools: ['exec'],
              ...(from ? { from: { ...from, parent: number(from.parent) } } : {}),
              ...(messages
                ? { messages: { ...messages, parent: parent === null ? null : number(parent) } }
                : {}),
            });
          }
          if (side) builder.call(side);
          return recoverTree(builder.end().record());
        };
        const beside = calls[when % calls.length]!;
        const side: BuiltCall = {
          call: number(beside.call) + 1,
          start: beside.start,
          finish: beside.start + 0.1,
          prompt: [77, 78],
          reply: [79],
          tools: [],
          messages: { parent: null, kept: 0, appended: [{ role: 'user', text: 'a title, please' }] },
        };
        const before = build(null);
        const after = build(side);
        const creditOf = (tree: RolloutTree) => {
          const work = tree.calls.filter(({ call }) => call !== side.call);
          const numberAt = (position: number): number => tree.calls[position]!.call;
          return work.map((one) => [
            one.call,
            one.untrained,
            pathOf(tree, one.promptNode),
            one.actionNode === -1 ? [] : spanOf(tree, one.actionNode),
            ...(['chain', 'lineage'] as const).map((name) => {
              const { offset_C1, successor_L, weight_L } = tree.causal[name];
              const at = tree.calls.indexOf(one);
              const links = [...successor_L.subarray(offset_C1[at], offset_C1[at + 1])];
              return links.map((position, k) => [numberAt(position), weight_L[offset_C1[at]! + k]]);
            }),
          ]);
        };
        expect(after.calls.find(({ call }) => call === side.call)!.role).toBe('side');
        expect(creditOf(after)).toEqual(creditOf(before));
        expect(after.edges).toEqual(before.edges);
      }),
      runs,
    );
  });

  it('6, 7: leaves a token out for what is known about its own call alone, never for an edge', () => {
    fc.assert(
      fc.property(randomRecord(), (random) => {
        const tree = recover(random);
        for (const call of tree.calls) {
          const truth = random.calls[call.call]!;
          const lost = truth.delivery !== 'complete' && ['gateway', 'engine'].includes(truth.cause!);
          const trains = sampledIn(truth) && truth.logprobs === 'fine' && truth.version! >= 0 && !lost;
          expect([call.call, call.untrained === null]).toEqual([call.call, trains]);
          if (!trains) continue;
          const { start_N, end_N } = tree.nodes;
          const logprobs = tree.logprobs_T.subarray(start_N[call.actionNode], end_N[call.actionNode]);
          expect([...logprobs]).toEqual(truth.reply!.map((_, i) => -0.5 - i));
        }
        for (const { confidence } of tree.edges) {
          expect(confidence).toBeGreaterThan(0);
          expect(confidence).toBeLessThanOrEqual(1);
        }
      }),
      runs,
    );
  });

  it('7: an edge that is trusted less changes credit at lambda < 1, and no token that trains', () => {
    fc.assert(
      fc.property(randomRecord(), fc.array(fc.double({ min: 0, max: 1, noNaN: true })), (random, drawn) => {
        const tree = recover(random);
        const edges = tree.edges.map((edge, i) => ({ ...edge, confidence: drawn[i] ?? edge.confidence }));
        const doubted = { ...tree, edges, causal: causalOrders(tree.calls, edges) };
        for (const preset of Object.values(presets)) {
          const trained = trainedSegments(applyPreset(tree, preset));
          expect(trainedSegments(applyPreset(doubted, preset))).toEqual(trained);
        }
        // Two tokens per call, of any value: at gamma = lambda = 1 no order matters, but for the rounding of a link's
        // weight (three times a third in f32 is not one).
        const credit = {
          tokenOffset_C1: Int32Array.from({ length: tree.calls.length + 1 }, (_, c) => 2 * c),
          values_T: Float64Array.from({ length: 2 * tree.calls.length }, (_, t) => (t % 5) / 4),
          ...{ reward: 1, gamma: 1, lambda: 1 },
        };
        const doubtful = causalAdvantages(doubted.causal.lineage, credit);
        causalAdvantages(tree.causal.lineage, credit).advantages_T.forEach((advantage, t) => {
          expect(doubtful.advantages_T[t]).toBeCloseTo(advantage, 6);
        });
      }),
      runs,
    );
  });

  it('8: comes back from its file as it was', () => {
    const path = join(directory, 'tree.bin');
    fc.assert(
      fc.property(randomRecord(), fc.boolean(), (random, unknown) => {
        if (unknown) {
          random.builder.call({
            call: 500,
            start: 900,
            finish: 901,
            prompt: [],
            reply: [1],
            temperature: null,
          });
        }
        const tree = recover(random);
        writeTree(path, tree);
        const again = readTree(path);
        expect(again).toEqual(tree);
        writeTree(path, again);
        expect(readTree(path)).toEqual(tree);
      }),
      { numRuns: 60 },
    );
  });

  it('9: reads and keeps no more than what is new, however long the context', () => {
    const options = fc.record({
      calls: fc.integer({ min: 1, max: 400 }),
      appended: fc.integer({ min: 1, max: 30 }),
      sampled: fc.integer({ min: 1, max: 12 }),
      retryEvery: fc.constantFrom(0, 3, 7),
      cutEvery: fc.constantFrom(0, 5, 50),
    });
    fc.assert(
      fc.property(options, (chain) => {
        const record = chainRecord(chain);
        let read = 0;
        const tokens = (span: Span): Int32Array | null => {
          read += span.count;
          return record.tokens(span);
        };
        const tree = recoverTree({ ...record, tokens });
        const fresh = chain.calls * (chain.appended + chain.sampled);
        expect(tree.tokens_T.length).toBeLessThanOrEqual(fresh);
        expect(read).toBeLessThanOrEqual(2 * fresh);
        // A prompt's end and its reply per call, and a cut at most where a history is left.
        expect(tree.nodes.kind_N.length).toBeLessThanOrEqual(3 * chain.calls);
        expect(tree.edges.length).toBeLessThanOrEqual(2 * chain.calls);
        expect(tree.causal.lineage.successor_L.length).toBeLessThanOrEqual(tree.edges.length);
      }),
      { numRuns: 60 },
    );
  });

  it('finds the same tree whether prompts are stored as deltas or in full', () => {
    fc.assert(
      fc.property(storedTwice({ distinctReplies: true }), ([delta, full]) => {
        const a = recover(delta);
        const b = recover(full);
        expect(b.nodes).toEqual(a.nodes);
        expect(b.tokens_T).toEqual(a.tokens_T);
        expect(b.calls).toEqual(a.calls);
      }),
      runs,
    );
  });

  it('gives edges that point from an earlier call to a later one, at most one continue into each', () => {
    fc.assert(
      fc.property(randomRecord(), (random) => {
        const tree = recover(random);
        const start = new Map(tree.calls.map((call) => [call.call, call.startTime]));
        const continued = tree.edges.filter(({ type }) => type === 'continue').map(({ to }) => to);
        expect(new Set(continued).size).toBe(continued.length);
        for (const { from, to } of tree.edges) expect(start.get(from)!).toBeLessThan(start.get(to)!);
      }),
      runs,
    );
  });

  it('needs no more than the start of a record', () => {
    const tree = recoverTree(new RecordBuilder().record());
    expect(tree.verdict).toEqual({ kind: 'rejected', reason: 'no reward' });
    expect(tree.status).toBe('open');
    expect(recoverTree(new RecordBuilder().record([])).verdict.reason).toBe(
      'the record has no rollout.start',
    );
  });
});
