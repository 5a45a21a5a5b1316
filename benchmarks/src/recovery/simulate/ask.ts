import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import type { CallRole } from '@treeward/tree-recovery';
import type { ScriptedReply } from '../record/gateway-session.js';
import type { Agent } from './agent.js';
import { phrase } from './behaviour.js';
import type { Process } from './clock.js';
import { exchange, type Exchanged, type Fate, type Request } from './exchange.js';
import type { InEdge } from './truth.js';
import { chance, strikes, time, type World } from './world.js';

export interface Question {
  agent: Agent;
  role: CallRole;
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  in: readonly InEdge[];
  /** What the policy says; drawn again for every attempt. */
  draw: () => ReplyPart[];
  arrived?: (call: number) => void;
}

export interface Answer extends Exchanged {
  malformed: boolean;
  /** The other of two draws that were asked for at once. */
  hedged: boolean;
}

/** Asks until a reply is there that the harness takes. Attempts are linked by `retry`. */
export function* ask(world: World, question: Question): Process<Answer> {
  const { behaviour } = world;
  const { failures, timing } = behaviour;
  let edges: readonly InEdge[] = question.in;
  let messages = question.messages;
  let previous: ReplyPart[] | null = null;
  const draw = (): ReplyPart[] => {
    const parts = previous && chance(world, failures.equalDraw) ? previous : question.draw();
    previous = parts;
    return parts;
  };
  const { arrived, ...rest } = question;
  const plain = (attempt: number): Omit<Request, 'reply' | 'fate'> => ({
    ...rest,
    messages,
    in: edges,
    ...(attempt === 1 && arrived && { arrived }),
  });

  for (let attempt = 1; ; attempt++) {
    const last = attempt >= failures.maxAttempts;
    const fate = last ? 'complete' : drawFate(world);
    if (fate === 'complete' && attempt === 1 && chance(world, failures.hedge)) {
      return yield* hedge(world, plain(attempt), draw);
    }
    const malformed = fate === 'complete' ? drawMalformed(world, last) : null;
    const reply: ScriptedReply = malformed
      ? { parts: [{ type: 'text', text: `<call> ${world.words.some([1, 6])}` }], malformed: 'no end of call' }
      : { parts: draw() };
    const done = yield* exchange(world, { ...plain(attempt), reply, fate });
    if (fate === 'complete' && malformed !== 'retry') {
      return { ...done, malformed: malformed === 'answer', hedged: false };
    }
    edges = [{ from: done.call, type: 'retry' }];
    if (fate !== 'complete' && chance(world, failures.retryBodyChanges)) {
      messages = withVolatileText(question.messages, world);
    }
    yield { sleep: fate === 'complete' ? time(world, timing.stagger) : time(world, timing.backoff) };
  }
}

function drawFate(world: World): Fate {
  const { serverError, lostReply, cutStream, clientTimeout } = world.behaviour.failures;
  if (strikes(world, 'cutStream')) return 'cut';
  let x = world.random.next();
  for (const [fate, probability] of [
    ['server-error', serverError],
    ['lost', lostReply],
    ['cut', cutStream],
    ['client-timeout', clientTimeout],
  ] as const) {
    if (x < probability) return fate;
    x -= probability;
  }
  return 'complete';
}

function drawMalformed(world: World, last: boolean): 'retry' | 'answer' | null {
  const { malformedRetry, malformedAnswer } = world.behaviour.failures;
  const x = world.random.next();
  if (x < malformedRetry) return last ? null : 'retry';
  return x < malformedRetry + malformedAnswer ? 'answer' : null;
}

/** Two equal requests side by side. Nothing tells a slow retry from a sibling here, so the truth is `ambiguous`. */
function* hedge(
  world: World,
  request: Omit<Request, 'reply' | 'fate'>,
  draw: () => ReplyPart[],
): Process<Answer> {
  const { clock, behaviour } = world;
  const second: InEdge[] = [];
  const finished: Exchanged[] = [];
  function* draws(more: Pick<Request, 'in' | 'arrived'>): Process<void> {
    const { arrived: _first, ...rest } = request;
    finished.push(yield* exchange(world, { ...rest, ...more, reply: { parts: draw() }, fate: 'complete' }));
  }
  const arrived = (call: number): void => {
    second.push({ from: call, type: 'ambiguous' });
    request.arrived?.(call);
  };
  const one = clock.start(draws({ in: request.in, arrived }));
  // Surely within the first one's time.
  yield { sleep: Math.min(20, behaviour.timing.sample.median / 50) };
  const two = clock.start(draws({ in: second }));
  yield { join: [one, two] };
  const [earlier, later] = finished as [Exchanged, Exchanged];
  // Of two replies that read the same nobody could say which was taken: the later one stands for both.
  const same = JSON.stringify(earlier.parts.map(told)) === JSON.stringify(later.parts.map(told));
  const taken = !same && chance(world, 0.5) ? earlier : later;
  return { ...taken, malformed: false, hedged: true };
}

/** What is said, without call ids. */
const told = (part: ReplyPart): unknown => (part.type === 'text' ? part.text : [part.name, part.arguments]);

/** What a harness adds to the last message of a request that it repeats. */
function withVolatileText(messages: readonly Message[], world: World): Message[] {
  const last = messages.at(-1);
  if (last?.role !== 'user') return [...messages, { role: 'user', text: volatile(world) }];
  return [...messages.slice(0, -1), { role: 'user', text: `${last.text}\n${volatile(world)}` }];
}

const volatile = (world: World): string =>
  phrase(world.behaviour.phrases.queued, `queued ${world.words.some([2, 2])}`);
