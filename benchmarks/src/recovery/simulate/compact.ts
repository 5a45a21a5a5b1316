import type { Message } from '@treeward/messages';
import { inEdges, type Agent } from './agent.js';
import { ask, type Answer } from './ask.js';
import { phrase } from './behaviour.js';
import type { Process } from './clock.js';
import { exchange } from './exchange.js';
import { between, chance, type World } from './world.js';

/** Replaces the history by a summary that the policy writes, and perhaps its last turns. */
export function* compact(
  world: World,
  agent: Agent,
  { keptTail: turns = between(world, world.behaviour.compaction.keptTail) } = {},
): Process<void> {
  const { compaction, phrases } = world.behaviour;
  const answer =
    compaction.style === 'continue' ? yield* askBehind(world, agent) : yield* askApart(world, agent);
  const summary = answer.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const [system, first] = agent.history;
  const tail = keptTail(agent.history, turns);
  agent.history = [
    system!.role === 'system' ? { ...system!, text: `${system!.text} (compacted)` } : system!,
    ...(compaction.style === 'toolless' && tail.length > 0 ? [first!] : []),
    {
      role: 'user',
      text: phrase(phrases.afterSummary, edited(summary, compaction.summary)),
    },
    ...tail,
  ];
  agent.marks = [];
  agent.returns = [];
  agent.last = null;
  agent.next = [{ from: answer.call, type: 'compaction' }];
  agent.compacted = true;
}

/** The whole history with an instruction behind it. */
function askBehind(world: World, agent: Agent): Process<Answer> {
  const { phrases } = world.behaviour;
  const messages: Message[] = [...agent.history, { role: 'user', text: phrases.summaryInstruction }];
  return ask(world, {
    agent,
    role: 'compaction',
    messages,
    tools: agent.tools,
    in: inEdges(agent),
    draw: () => [{ type: 'text', text: phrase(phrases.summaryReply, world.words.some([20, 50])) }],
  });
}

/** The history goes as text into a request of its own, mostly because the next call is refused as too long. */
function* askApart(world: World, agent: Agent): Process<Answer> {
  const { phrases } = world.behaviour;
  let of = agent.last!;
  if (agent.returns.length > 0 || chance(world, world.behaviour.compaction.refused)) {
    const refused = yield* exchange(world, {
      agent,
      role: agent.depth > 0 ? 'subagent' : 'main',
      messages: agent.history,
      tools: agent.tools,
      in: inEdges(agent),
      reply: { parts: [] },
      fate: 'refused',
    });
    of = refused.call;
  }
  return yield* ask(world, {
    agent,
    role: 'compaction',
    messages: [
      { role: 'system', text: phrases.summarySystem },
      { role: 'user', text: phrase(phrases.summaryRequest, asText(agent.history)) },
    ],
    tools: [],
    in: [{ from: of, type: 'compaction' }],
    draw: () => [{ type: 'text', text: world.words.some([20, 50]) }],
  });
}

function asText(history: readonly Message[]): string {
  return history
    .filter(({ role }) => role !== 'system')
    .map((message) =>
      message.role === 'assistant'
        ? `[assistant]: ${message.parts.map((part) => (part.type === 'text' ? part.text : `${part.name} ${JSON.stringify(part.arguments)}`)).join(' ')}`
        : `[${message.role}]: ${message.text}`,
    )
    .join('\n');
}

/** The last `turns` replies with what answered them. */
function keptTail(history: readonly Message[], turns: number): Message[] {
  if (turns === 0) return [];
  const replies = history.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []));
  const from = replies.at(-turns);
  return from === undefined ? [] : history.slice(from);
}

function edited(summary: string, how: World['behaviour']['compaction']['summary']): string {
  const stripped = summary.replace(/<\/?summary>/g, '').trim();
  if (how === 'verbatim') return summary;
  if (how === 'stripped') return stripped;
  const words = stripped.split(' ');
  return words.slice(0, Math.ceil(0.6 * words.length)).join(' ');
}
