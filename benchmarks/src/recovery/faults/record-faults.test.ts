import { fileURLToPath } from 'node:url';
import { randomStream } from '@treeward/base';
import { hashTokens } from '@treeward/telemetry';
import { beforeAll, describe, expect, it } from 'vitest';
import { recordedPrompts } from '../record/recorded-prompts.js';
import { loadBehaviours } from '../simulate/behaviour.js';
import { simulateRollout, type SimulatedRollout } from '../simulate/rollout.js';
import { applyFaults, FAULTY, liveFaults } from './conditions.js';
import { RECORD_FAULTS } from './record-faults.js';

const [behaviour] = loadBehaviours(fileURLToPath(new URL('../../../behaviours/tuning', import.meta.url)));
let rollouts: SimulatedRollout[];
beforeAll(async () => {
  rollouts = await Promise.all(
    Array.from({ length: 40 }, (_, i) => simulateRollout(behaviour!, `faults/${i}`)),
  );
});

describe.each(Object.entries(RECORD_FAULTS))('%s', (name, fault) => {
  it('strikes at its rate, and nothing else changes', () => {
    let calls = 0;
    let struck = 0;
    rollouts.forEach(({ record, truth }, index) => {
      const before = [...record.events];
      const done = fault(record, before, 0.2, randomStream('rate', name, index));
      calls += truth.calls.length;
      struck += done.calls.size;
      const same = new Set(before);
      const foreign = done.events.filter((event) => !same.has(event));
      // A wrong graft changes the prompts that grow out of the wrong one as well.
      if (name !== 'wrong-graft') {
        expect(foreign.every((event) => 'call' in event && done.calls.has(event.call!))).toBe(true);
      }
    });
    expect(struck / calls).toBeGreaterThan(name === 'wrong-graft' ? 0.1 : 0.17);
    expect(struck / calls).toBeLessThan(0.23);
  });
});

it('a wrong graft leaves a record whose hashes hold: the policy did see those tokens', () => {
  let changed = 0;
  rollouts.forEach(({ record }, index) => {
    const before = new Map(recordedPrompts(record.input()).map(({ call, prompt }) => [call, prompt]));
    const { events } = RECORD_FAULTS['wrong-graft'](record, record.events, 0.2, randomStream('graft', index));
    const prompts = recordedPrompts(record.input(events));
    expect(prompts).toHaveLength(before.size);
    for (const { call, prompt } of prompts) {
      const event = events.find((one) => one.type === 'call.prompt' && one.call === call);
      expect(event).toMatchObject({ prompt: { length: prompt.length, hash: hashTokens(prompt) } });
      if (hashTokens(before.get(call)!) !== hashTokens(prompt)) changed++;
    }
  });
  expect(changed).toBeGreaterThan(50);
});

it('lost calls are named, and a faulty record is the same every time', async () => {
  const all = FAULTY.find(({ name }) => name === 'all')!;
  const once = async () => {
    const rollout = await simulateRollout(behaviour!, 'again', { faults: liveFaults(all) });
    return applyFaults(rollout, all, 'again');
  };
  const [a, b] = [await once(), await once()];
  expect(a.events).toEqual(b.events);
  const arrived = new Set(a.events.flatMap((event) => (event.type === 'call.start' ? [event.call] : [])));
  expect([...a.lost].some((call) => arrived.has(call))).toBe(false);
});
