import { branchOf, changeTools, type Agent } from './agent.js';
import { phrase } from './behaviour.js';
import type { Process } from './clock.js';
import { compact } from './compact.js';
import { rewriteHistory } from './rewrite-history.js';
import { runTurns } from './run-agent.js';
import type { Siblings } from './truth.js';
import { chance, time, type World } from './world.js';

/** What a harness does to a conversation between two of its calls; at most one thing at a time. */
export function* disturb(world: World, agent: Agent, mayFork: boolean): Process<void> {
  const { behaviour } = world;
  if (agent.last === null || agent.next !== null) return;
  if (chance(world, behaviour.compaction.chance)) return yield* compact(world, agent);
  if (asksUser(agent) && chance(world, behaviour.compaction.manual)) {
    // The user has it done before saying anything new.
    const said = agent.history.pop()!;
    yield* compact(world, agent, { keptTail: 0 });
    agent.history.push(said);
    return;
  }
  if (chance(world, behaviour.rollback)) return rollBack(world, agent);
  if (chance(world, behaviour.rewrite.chance)) return rewriteHistory(world, agent);
  // Results that both branches would hold belong to neither.
  if (mayFork && agent.returns.length === 0 && chance(world, behaviour.fork))
    return yield* fork(world, agent);
  if (chance(world, behaviour.rewrite.systemOnly)) {
    agent.history[0] = {
      role: 'system',
      text: `${behaviour.phrases.mainSystem} Date ${world.words.some([2, 3])}.`,
    };
  } else if (chance(world, behaviour.rewrite.toolsOnly)) {
    changeTools(agent, world.requests);
  }
}

/** Did the agent answer in text, and the user go on? */
function asksUser({ depth, history, returns }: Agent): boolean {
  const before = history.at(-2);
  return (
    depth === 0 &&
    returns.length === 0 &&
    history.at(-1)?.role === 'user' &&
    before?.role === 'assistant' &&
    before.parts.every(({ type }) => type === 'text')
  );
}

/** Cuts the history to an earlier reply and what it was answered, and goes on differently. */
function rollBack(world: World, agent: Agent): void {
  // At least one reply is given up; what came of agents or of two draws at once is left alone.
  const targets = agent.marks.slice(0, -1).filter(({ spawned }) => !spawned);
  if (targets.length === 0 || agent.hedged || agent.returns.length > 0) return;
  const { phrases } = world.behaviour;
  const mark = world.random.pick(targets.slice(-4));
  const from = agent.last!;
  const answered = agent.history.slice(mark.length);
  const end = answered.findIndex(({ role }) => role === 'assistant');
  const results = answered.slice(0, end);
  const anew = chance(world, 0.5) && results.some(({ role }) => role === 'tool');
  agent.history = agent.history.slice(0, mark.length);
  for (const message of results) {
    const again = anew && message.role === 'tool';
    agent.history.push(again ? { ...message, text: world.words.some([6, 16]) } : message);
  }
  if (!anew)
    agent.history.push({ role: 'user', text: phrase(phrases.anotherWay, world.words.some([4, 10])) });
  agent.marks = agent.marks.filter(({ length }) => length <= mark.length);
  agent.last = mark.call;
  agent.next = [{ from, type: 'rollback' }];
}

/** Two branches leave the same history side by side; both go on, one of them is kept. */
function* fork(world: World, agent: Agent): Process<void> {
  const { phrases } = world.behaviour;
  const siblings: Siblings = [];
  world.truth.siblings(siblings);
  const branches = [0, 1].map((index) => {
    const branch = branchOf(agent);
    branch.history.push({ role: 'user', text: phrase(phrases.variant, world.words.some([4, 10])) });
    branch.siblings = siblings;
    const process = (function* (): Process<Agent> {
      yield* runTurns(world, branch, 2, { mayFork: false, ends: false });
      return branch;
    })();
    return world.clock.start(process, index * time(world, world.behaviour.timing.stagger));
  });
  yield { join: branches };
  const winner = world.random.pick(branches).result!;
  Object.assign(agent, {
    ...winner,
    self: agent.self,
    inbox: agent.inbox,
    siblings: null,
    branch: agent.branch,
  });
}
