import type { Message, ReplyPart } from '@treeward/messages';
import { identityLine } from '../record/identity.js';
import { newAgent, type Agent } from './agent.js';
import type { Answer } from './ask.js';
import { phrase } from './behaviour.js';
import type { Process, Task } from './clock.js';
import { runAgent } from './run-agent.js';
import type { Siblings } from './truth.js';
import { between, chance, strikes, time, type World } from './world.js';

/** A reply that starts agents. */
export function spawnParts(world: World): ReplyPart[] {
  const { children, phrases } = world.behaviour;
  const tasks: string[] = [];
  for (let i = between(world, children.count); i > 0; i--) {
    // Two equal first requests that say nothing of their sender are like the two of `hedge`: that is left to `hedge`.
    const same = tasks.length > 0 && world.gateway.identifiesAgents && chance(world, children.sameTask);
    tasks.push(same ? tasks[0]! : world.words.some(children.taskWords));
  }
  return [
    { type: 'text', text: world.words.reply(world.behaviour.text.replyWords) },
    ...tasks.map((prompt): ReplyPart => ({
      type: 'tool_call',
      id: '',
      name: phrases.agentTool,
      arguments: {
        description: world.words.some([2, 4]),
        [phrases.agentTask]: prompt,
        ...phrases.agentArguments,
      },
    })),
  ];
}

/** Runs the agents that a reply starts. In the foreground their results are there when it returns. */
export function* runChildren(world: World, parent: Agent, answer: Answer): Process<Task<void>[]> {
  const { children, phrases, timing } = world.behaviour;
  const calls = answer.parts.flatMap((part) => (part.type === 'tool_call' ? [part] : []));
  const background = !parent.branch && chance(world, children.background);
  const told = !background || !chance(world, children.unreported);
  const siblings: Siblings = [];
  world.truth.siblings(siblings);
  const free = { slots: children.concurrency };
  const running = calls.map((call, index) => {
    const task = String(call.arguments[phrases.agentTask]);
    const child = newAgent(world, parent, task, phrase(phrases.task, task));
    const line = identityLine(world.behaviour, {
      session: parent.session,
      agent: child.id,
      parent: child.parent,
      depth: child.depth,
      role: 'subagent',
      compacted: false,
    });
    if (line !== null) {
      const first = child.history[1] as { role: 'user'; text: string };
      child.history[1] = { role: 'user', text: `${line}\n${first.text}` };
    }
    child.next = [{ from: answer.call, type: 'spawn' }];
    child.siblings = siblings;
    const process = (function* (): Process<Result> {
      while (free.slots === 0) yield { sleep: 50 };
      free.slots--;
      const text = yield* runAgent(world, child, between(world, children.turns));
      free.slots++;
      return { text: cutResult(world, text), call: child.last! };
    })();
    return world.clock.start(process, index * time(world, timing.stagger));
  });

  if (!background) {
    yield { join: running };
    calls.forEach((call, index) => {
      const { text, call: from } = running[index]!.result!;
      parent.history.push({ role: 'tool', callId: call.id, text: phrase(phrases.result, text) });
      parent.returns.push({ from, type: 'return' });
    });
    return [];
  }
  for (const call of calls) {
    parent.history.push({ role: 'tool', callId: call.id, text: phrases.started });
  }
  return running.map((task) =>
    world.clock.start(
      (function* (): Process<void> {
        yield { join: [task] };
        if (told) parent.inbox.push(task.result!);
      })(),
    ),
  );
}

interface Result {
  text: string;
  call: number;
}

/** What background agents reported since the last call, as messages of the parent's history. */
export function takeInbox(world: World, agent: Agent): void {
  for (const { text, call } of agent.inbox.splice(0)) {
    const message: Message = { role: 'user', text: phrase(world.behaviour.phrases.report, text) };
    agent.history.push(message);
    agent.returns.push({ from: call, type: 'return' });
  }
}

function cutResult(world: World, text: string): string {
  const words = text.split(' ');
  const limit = strikes(world, 'truncateResults')
    ? Math.ceil(0.4 * words.length)
    : world.behaviour.children.resultWords;
  return words.length <= limit
    ? text
    : `${words.slice(0, limit).join(' ')} ${world.behaviour.phrases.truncated}`;
}
