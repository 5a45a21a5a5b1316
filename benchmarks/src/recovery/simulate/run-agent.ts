import type { Message, ReplyPart } from '@treeward/messages';
import { inEdges, type Agent } from './agent.js';
import { ask, type Answer } from './ask.js';
import { runChildren, spawnParts, takeInbox } from './children.js';
import { phrase } from './behaviour.js';
import type { Process, Task } from './clock.js';
import { disturb } from './disturb.js';
import { exchange } from './exchange.js';
import { between, chance, strikes, time, type World } from './world.js';

/** An agent from its first call to its last; gives its last text. */
export function* runAgent(world: World, agent: Agent, turns: number): Process<string> {
  return yield* runTurns(world, agent, turns, { mayFork: true, ends: true });
}

interface TurnOptions {
  mayFork: boolean;
  /** The last turn is a text without calls. Otherwise the history is left ready for another call. */
  ends: boolean;
}

export function* runTurns(
  world: World,
  agent: Agent,
  turns: number,
  { mayFork, ends }: TurnOptions,
): Process<string> {
  const pending: Task<void>[] = [];
  let text = '';
  for (let turn = 0; ; turn++) {
    if (turn > 0) yield* disturb(world, agent, mayFork);
    takeInbox(world, agent);
    const final = ends && turn >= turns - 1;
    if (agent.depth === 0 && turn > 0 && chance(world, world.behaviour.side.topic)) {
      world.clock.start(sideCall(world, agent, world.behaviour.phrases.topic));
    }
    const plan = final ? 'text' : drawPlan(world, agent, ends);
    const answer = yield* say(world, agent, () => replyFor(world, plan));
    const calls = answer.parts.filter(({ type }) => type === 'tool_call');
    text = answer.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    if (answer.malformed) {
      agent.history.push({ role: 'user', text: world.behaviour.phrases.badReply });
    } else if (plan === 'spawn' && calls.length > 0) {
      pending.push(...(yield* runChildren(world, agent, answer)));
    } else if (calls.length > 0) {
      yield* runTools(world, agent, answer.parts);
    } else if (final) {
      if (pending.every(({ done }) => done) && agent.inbox.length === 0) {
        if (agent.depth === 0) yield* lastRetry(world, agent);
        return text;
      }
      yield { join: pending };
    } else {
      agent.history.push({ role: 'user', text: world.words.some([4, 16]) });
    }
    if (!ends && turn >= turns - 1) return text;
  }
}

type Plan = 'text' | 'tools' | 'spawn';

function drawPlan(world: World, agent: Agent, mayAsk: boolean): Plan {
  const { children } = world.behaviour;
  if (
    agent.depth < children.maxDepth &&
    chance(world, agent.depth === 0 ? children.spawn : children.spawn / 2)
  ) {
    return 'spawn';
  }
  return mayAsk && agent.depth === 0 && chance(world, world.behaviour.text.userTurn) ? 'text' : 'tools';
}

function replyFor(world: World, plan: Plan): ReplyPart[] {
  const { text } = world.behaviour;
  if (plan === 'spawn') return spawnParts(world);
  if (plan === 'text') return [{ type: 'text', text: world.words.reply(text.replyWords) }];
  const calls = Array.from({ length: between(world, text.callsPerReply) }, (): ReplyPart => ({
    type: 'tool_call',
    id: '',
    ...world.words.tool(),
  }));
  const silent = chance(world, text.silentCalls);
  return silent ? calls : [{ type: 'text', text: world.words.reply(text.replyWords) }, ...calls];
}

/** One call of the agent on its history; the reply is the history's last message afterwards. */
function* say(world: World, agent: Agent, draw: () => ReplyPart[]): Process<Answer> {
  if (strikes(world, 'rewriteIds')) rewriteIds(world, agent);
  const { siblings } = agent;
  const place = { call: -1, turnEnd: Infinity };
  const messages = world.behaviour.quirks.volatileTail ? withTail(world, agent.history) : agent.history;
  const answer = yield* ask(world, {
    agent,
    role: agent.depth > 0 ? 'subagent' : 'main',
    messages: [...messages],
    tools: [...agent.tools],
    in: inEdges(agent),
    draw,
    ...(siblings && { arrived: (call: number) => siblings.push(Object.assign(place, { call })) }),
  });
  place.turnEnd = world.clock.now;
  agent.siblings = null;
  agent.next = null;
  agent.returns = [];
  agent.compacted = false;
  agent.hedged = answer.hedged;
  agent.last = answer.call;
  agent.history.push({ role: 'assistant', parts: answer.parts });
  const spawned = answer.parts.some(
    (part) => part.type === 'tool_call' && part.name === world.behaviour.phrases.agentTool,
  );
  agent.marks.push({ length: agent.history.length, call: answer.call, spawned });
  return answer;
}

function* runTools(world: World, agent: Agent, parts: readonly ReplyPart[]): Process<void> {
  yield { sleep: time(world, world.behaviour.timing.tool) };
  for (const part of parts) {
    if (part.type !== 'tool_call') continue;
    const whole = world.words.result(world.behaviour.text.resultWords);
    const cut = strikes(world, 'truncateResults') ? whole.slice(0, Math.ceil(0.4 * whole.length)) : whole;
    agent.history.push({ role: 'tool', callId: part.id, text: cut });
  }
}

/** The last reply is tried again although it arrived; nothing follows either. */
function* lastRetry(world: World, agent: Agent): Process<void> {
  if (agent.hedged || !chance(world, world.behaviour.failures.lastRetry)) return;
  yield { sleep: time(world, world.behaviour.timing.stagger) };
  const again = yield* exchange(world, {
    agent,
    role: 'main',
    messages: agent.history.slice(0, -1),
    tools: agent.tools,
    in: [{ from: agent.last!, type: 'retry' }],
    reply: { parts: [{ type: 'text', text: world.words.reply(world.behaviour.text.replyWords) }] },
    fate: 'complete',
  });
  agent.last = again.call;
}

/** A request outside the work: no tools, its own prompt. */
export function* sideCall(world: World, agent: Agent, instruction: string): Process<void> {
  yield* exchange(world, {
    agent,
    role: 'side',
    messages: [
      { role: 'system', text: instruction },
      { role: 'user', text: phrase(world.behaviour.phrases.sideRequest, agent.task) },
    ],
    tools: [],
    in: [],
    reply: { parts: [{ type: 'text', text: world.words.some([2, 5]) }] },
    fate: 'complete',
  });
}

/** From now on every call id in the history is another one. */
function rewriteIds(world: World, agent: Agent): void {
  const mark = `r${world.faultRandom.below(2 ** 31).toString(36)}_`;
  agent.history = agent.history.map((message): Message => {
    if (message.role === 'tool') return { ...message, callId: mark + message.callId };
    if (message.role !== 'assistant') return message;
    return {
      role: 'assistant',
      parts: message.parts.map((part) => (part.type === 'text' ? part : { ...part, id: mark + part.id })),
    };
  });
}

/** Text that is in this request only. */
function withTail(world: World, history: readonly Message[]): Message[] {
  const text = phrase(world.behaviour.phrases.queued, world.words.some([4, 8]));
  return [...history, { role: 'user', text }];
}
