import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import type { CallRole } from '@treeward/tree-recovery';
import type { ScriptedReply } from '../record/gateway-session.js';
import { identityHeaders } from '../record/identity.js';
import type { Agent } from './agent.js';
import type { Process } from './clock.js';
import type { InEdge } from './truth.js';
import { time, type World } from './world.js';

/**
 * What becomes of one request. `server-error` and `refused` (over the window) sample nothing; `lost`: the connection
 * breaks before the reply; `cut`: within it; `client-timeout`: the harness leaves while the policy is still sampling.
 */
export type Fate = 'complete' | 'server-error' | 'refused' | 'lost' | 'cut' | 'client-timeout';

export interface Request {
  agent: Agent;
  role: CallRole;
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  in: readonly InEdge[];
  reply: ScriptedReply;
  fate: Fate;
  /** Told the call's number as soon as it has one. */
  arrived?: (call: number) => void;
}

export interface Exchanged {
  call: number;
  /** With the ids that the harness saw. Empty when it saw nothing. */
  parts: ReplyPart[];
}

/** One request and its answer; returns when the harness knows the outcome. */
export function* exchange(world: World, request: Request): Process<Exchanged> {
  const { clock, gateway, truth, behaviour } = world;
  const { agent, role, fate } = request;
  const headers = identityHeaders(behaviour, {
    session: agent.session,
    agent: agent.id,
    parent: agent.parent,
    depth: agent.depth,
    role,
    compacted: agent.compacted,
  });
  const turn = world.requests++;
  const start = clock.now;
  let call = -1;
  yield {
    work: async () => {
      call = await gateway.arrive({ messages: request.messages, tools: request.tools, turn }, headers, start);
    },
  };
  truth.call(call, { role, agent: agent.self, start, in: request.in });
  request.arrived?.(call);

  const sample = (): ReplyPart[] => {
    const { tokens, parts } = gateway.sampled(call, request.reply);
    truth.sampled(call, tokens);
    return parts;
  };
  const end = (firstByte: number | null, outcome: Pick<Outcome, 'delivery' | 'cause' | 'status'>): void => {
    truth.finished(call, firstByte ?? clock.now);
    gateway.end(call, { firstByte, ...outcome });
  };

  if (fate === 'server-error' || fate === 'refused') {
    yield { sleep: time(world, behaviour.timing.stagger) };
    const refused = { delivery: 'none', cause: 'done', status: 400 } as const;
    end(null, fate === 'refused' ? refused : { delivery: 'none', cause: 'gateway', status: 529 });
    return { call, parts: [] };
  }
  const duration = time(world, behaviour.timing.sample);
  if (fate === 'client-timeout') {
    yield { sleep: duration * 0.6 };
    // The policy goes on to the end; the harness does not wait for it.
    clock.start(
      (function* () {
        yield { sleep: duration * 0.4 };
        sample();
        end(null, { delivery: 'none', cause: 'client', status: 499 });
      })(),
    );
    return { call, parts: [] };
  }
  yield { sleep: duration };
  const parts = sample();
  const firstByte = clock.now;
  if (fate === 'lost') {
    end(null, { delivery: 'none', cause: 'gateway', status: 200 });
    return { call, parts: [] };
  }
  if (fate === 'cut') {
    yield { sleep: 5 };
    end(firstByte, { delivery: 'partial', cause: 'client', status: 200 });
    return { call, parts: [] };
  }
  yield { sleep: 1 };
  end(firstByte, { delivery: 'complete', cause: 'done', status: 200 });
  return { call, parts };
}

type Outcome = Parameters<World['gateway']['end']>[1];
