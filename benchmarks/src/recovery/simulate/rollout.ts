import { randomStream } from '@treeward/base';
import { GatewaySession } from '../record/gateway-session.js';
import { identityLine } from '../record/identity.js';
import { MemoryRecord } from '../record/memory-record.js';
import { newAgent } from './agent.js';
import type { Behaviour } from './behaviour.js';
import { Clock } from './clock.js';
import { oracle, type Values } from './oracle.js';
import { runAgent, sideCall } from './run-agent.js';
import { TruthBuilder, type Truth } from './truth.js';
import { Words } from './words.js';
import { between, chance, NO_LIVE_FAULTS, type LiveFaults, type World } from './world.js';

export interface SimulatedRollout {
  record: MemoryRecord;
  truth: Truth;
  values: Values;
  reward: number;
  /** How often each live fault struck. */
  struck: Readonly<Record<keyof LiveFaults, number>>;
}

export interface SimulateOptions {
  faults?: LiveFaults;
  /** Of the main agent, instead of a draw from the behaviour. */
  turns?: number;
}

/** Draws one rollout: its record as the gateway writes it, and the truth about it. The same seed gives the same rollout. */
export async function simulateRollout(
  behaviour: Behaviour,
  seed: string,
  options: SimulateOptions = {},
): Promise<SimulatedRollout> {
  const rolloutId = `${behaviour.name}-${seed.replaceAll('/', '-')}`;
  const random = randomStream(seed, behaviour.name, 'rollout');
  const clock = new Clock(1_700_000_000_000);
  const record = new MemoryRecord(() => clock.now);
  const truth = new TruthBuilder();
  const world: World = {
    behaviour,
    clock,
    random,
    words: new Words(random, { reply: behaviour.text.commonReply, result: behaviour.text.commonResult }),
    truth,
    gateway: new GatewaySession(rolloutId, behaviour, record),
    faults: options.faults ?? NO_LIVE_FAULTS,
    faultRandom: randomStream(seed, behaviour.name, 'faults'),
    struck: { cutStream: 0, truncateResults: 0, rewriteIds: 0 },
    requests: 0,
  };
  record.append({
    type: 'rollout.start',
    version: 1,
    minor: 1,
    rolloutId,
    time: 0,
    template: 'words',
    labels: { task: 'simulated', harness: behaviour.harness, behaviour: behaviour.name },
  });

  const last = between(world, behaviour.sessions) - 1;
  for (let index = 0; index <= last; index++) {
    // Later ones begin while the first is at work.
    const delay = index * random.next() * 10 * behaviour.timing.sample.median;
    startSession(world, delay, options.turns);
  }
  await clock.run();

  const built = truth.build();
  const { values, reward } = oracle(built.calls, seed);
  record.append({ type: 'process.exit', time: 0, code: 0, signal: null, timedOut: false });
  record.append({ type: 'verifier', time: 0, reward, scores: {} });
  record.append({ type: 'rollout.end', time: 0, status: 'completed' });
  return { record, truth: built, values, reward, struck: world.struck };
}

/** A main agent, and perhaps the title of its session. */
function startSession(world: World, delay: number, turns?: number): void {
  const { behaviour, clock, random } = world;
  const session = `session-${random.below(2 ** 31).toString(16)}`;
  const task = world.words.some([10, 30]);
  const sender = { session, agent: null, parent: null, depth: 0 } as const;
  const line = identityLine(behaviour, { ...sender, role: 'main', compacted: false });
  const main = newAgent(world, { session }, task, line === null ? task : `${line}\n${task}`);
  if (chance(world, behaviour.side.title)) {
    clock.start(sideCall(world, main, behaviour.phrases.title), delay);
  }
  clock.start(runAgent(world, main, turns ?? between(world, behaviour.turns)), delay + 10);
}
