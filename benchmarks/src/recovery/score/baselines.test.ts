import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadBehaviours, type Behaviour } from '../simulate/behaviour.js';
import { simulateRollout, type SimulatedRollout } from '../simulate/rollout.js';
import { linearised, messagePrefix, tokenPrefix } from './baselines.js';

const file = fileURLToPath(new URL('../../../behaviours/scale', import.meta.url));
/** One agent, nothing ever goes wrong: the one case in which every method sees the same. */
const plain = loadBehaviours(file).find(({ name }) => name === 'long-context') as Behaviour;
let rollout: SimulatedRollout;
beforeAll(async () => {
  rollout = await simulateRollout(plain, 'baselines', { turns: 12 });
});

describe('on a plain conversation', () => {
  const chain = new Map(Array.from({ length: 11 }, (_, i) => [i + 1, i]));
  it('a line', () => expect(linearised(rollout.record.events)).toEqual(chain));
  it('a trie of messages', () => expect(messagePrefix(rollout.record.events)).toEqual(chain));
  it('a trie of tokens', () => expect(tokenPrefix(rollout.record.input())).toEqual(chain));
});

it('the tries hang a retry beside the failed attempt, the line puts it behind', async () => {
  const failing = { ...plain, failures: { ...plain.failures, malformedRetry: 0.5 } };
  const { record, truth } = await simulateRollout(failing, 'retries', { turns: 6 });
  const retry = truth.edges.find(({ type, from }) => type === 'retry' && from > 0)!;
  expect(linearised(record.events).get(retry.to)).toBe(retry.from);
  for (const parents of [messagePrefix(record.events), tokenPrefix(record.input())]) {
    expect(parents.get(retry.to)).toBe(parents.get(retry.from));
  }
});
