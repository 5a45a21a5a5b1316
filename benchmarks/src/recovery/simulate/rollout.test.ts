import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadBehaviours, type Behaviour } from './behaviour.js';
import { simulateRollout } from './rollout.js';
import { NO_LIVE_FAULTS } from './world.js';

const DIRECTORY = fileURLToPath(new URL('../../../behaviours/', import.meta.url));
const behaviours = ['tuning', 'held-out'].flatMap((set) => loadBehaviours(DIRECTORY + set));

const draw = (behaviour: Behaviour, count: number) =>
  Promise.all(Array.from({ length: count }, (_, i) => simulateRollout(behaviour, `test/${i}`)));

describe.each(behaviours.map((behaviour) => [behaviour.name, behaviour] as const))('%s', (_, behaviour) => {
  it('knows every call: role, agent, times, and what was sampled', async () => {
    for (const { truth, record } of await draw(behaviour, 5)) {
      const starts = record.events.flatMap((event) => (event.type === 'call.start' ? [event.call] : []));
      expect(truth.calls.map(({ call }) => call)).toEqual(starts.sort((a, b) => a - b));
      const ends = record.events.filter(({ type }) => type === 'call.end');
      expect(ends).toHaveLength(starts.length);
      for (const event of record.events) {
        if (event.type !== 'call.sampled') continue;
        expect(truth.calls[event.call]!.tokens).toEqual(record.read(event.tokens));
      }
      expect(truth.calls.every(({ start, finish }) => finish >= start)).toBe(true);
    }
  });

  it('has edges that lead forward, and at most one of them that says what a call attaches to', async () => {
    for (const { truth } of await draw(behaviour, 5)) {
      const attached = new Map<number, number>();
      for (const { from, to, type } of truth.edges) {
        expect(from).toBeLessThan(to);
        if (type !== 'parallel' && type !== 'return') attached.set(to, (attached.get(to) ?? 0) + 1);
      }
      const sides = new Set(truth.calls.filter(({ role }) => role === 'side').map(({ call }) => call));
      const roots = truth.calls.filter(({ call }) => !attached.has(call) && !sides.has(call));
      expect(roots.length).toBeGreaterThanOrEqual(behaviour.sessions[0]);
      expect(roots.length).toBeLessThanOrEqual(behaviour.sessions[1]);
      expect([...attached.values()].every((count) => count === 1)).toBe(true);
      expect(truth.edges.some(({ from, to }) => sides.has(from) || sides.has(to))).toBe(false);
    }
  });

  it('numbers agents in the order of their first call, one spawn for each', async () => {
    for (const { truth } of await draw(behaviour, 5)) {
      const seen: number[] = [];
      for (const { agent, role } of truth.calls) {
        if (role !== 'side' && !seen.includes(agent)) seen.push(agent);
      }
      expect(seen).toEqual(seen.map((_agent, index) => index));
      const spawned = new Set(
        truth.calls.filter(({ role }) => role === 'subagent').map(({ agent }) => agent),
      );
      expect(truth.edges.filter(({ type }) => type === 'spawn')).toHaveLength(spawned.size);
      const sessions = seen.length - spawned.size;
      expect(sessions).toBeGreaterThanOrEqual(behaviour.sessions[0]);
      expect(sessions).toBeLessThanOrEqual(behaviour.sessions[1]);
    }
  });

  it('draws the same rollout from the same seed, and another from another', async () => {
    const [a, b, c] = await Promise.all([
      simulateRollout(behaviour, 'test/0'),
      simulateRollout(behaviour, 'test/0'),
      simulateRollout(behaviour, 'test/1'),
    ]);
    expect(a.record.events).toEqual(b.record.events);
    expect(a.truth).toEqual(b.truth);
    expect(a.record.events).not.toEqual(c.record.events);
  });
});

it('every pattern turns up in the tuning set', async () => {
  const types = new Set<string>();
  const roles = new Set<string>();
  for (const behaviour of behaviours) {
    for (const { truth } of await draw(behaviour, 8)) {
      for (const { type } of truth.edges) types.add(type);
      for (const { role } of truth.calls) roles.add(role);
    }
  }
  expect([...types].sort()).toEqual(
    'ambiguous compaction continue parallel retry return rewrite rollback spawn'.split(' '),
  );
  expect([...roles].sort()).toEqual(['compaction', 'main', 'side', 'subagent']);
});

it('live faults strike at their rate', async () => {
  const struck = { cutStream: 0, truncateResults: 0, rewriteIds: 0 };
  let calls = 0;
  for (let i = 0; i < 25; i++) {
    const faults = { ...NO_LIVE_FAULTS, cutStream: 0.2, rewriteIds: 0.2 };
    const rollout = await simulateRollout(behaviours[0]!, `live/${i}`, { faults });
    calls += rollout.truth.calls.length;
    struck.cutStream += rollout.struck.cutStream;
    struck.rewriteIds += rollout.struck.rewriteIds;
  }
  // Side calls and refused ones are never cut, retries keep their ids: a little below the rate.
  expect(struck.cutStream / calls).toBeGreaterThan(0.14);
  expect(struck.cutStream / calls).toBeLessThan(0.24);
  expect(struck.rewriteIds / calls).toBeGreaterThan(0.09);
  expect(struck.rewriteIds / calls).toBeLessThan(0.24);
});
