import type { Message, ToolSpec } from '@treeward/messages';
import type { InEdge, Siblings } from './truth.js';
import type { World } from './world.js';

/** An agent and the conversation it is in. A forked branch is a copy that shares `self`. */
export interface Agent {
  /** Stands for the agent in the truth: equal for its branches. */
  self: object;
  /** Null for the main agent. */
  id: string | null;
  parent: string | null;
  session: string;
  depth: number;
  /** What it was asked to do, without any wrapping. */
  task: string;
  tools: ToolSpec[];
  /** Leading system message, then turns. Ends with what the next call answers. */
  history: Message[];
  /** Where replies ended in `history`: places to which a rollback can cut. */
  marks: Mark[];
  /** The call whose reply is the last in `history`; null when none is. */
  last: number | null;
  /** What leads to the next call instead of a plain continuation. */
  next: InEdge[] | null;
  /** Last calls of agents whose results came into `history` since the last call. */
  returns: InEdge[];
  /** Results of background agents that are still to be told. */
  inbox: { text: string; call: number }[];
  /** Joins the first call to others that leave the same place. */
  siblings: Siblings | null;
  /** The first request after a compaction is still to come. */
  compacted: boolean;
  /** One of two branches, of which one will be dropped: it starts no agents that outlive it. */
  branch: boolean;
  /** The last reply was one of two draws asked for at once. */
  hedged: boolean;
}

export interface Mark {
  /** Messages up to and including the reply. */
  length: number;
  call: number;
  /** The reply started agents: its results cannot be made anew. */
  spawned: boolean;
}

const TOOL_NAMES = ['read', 'write', 'edit', 'exec'];

const tool = (name: string): ToolSpec => ({
  name,
  description: `${name} something`,
  parameters: { type: 'object', properties: { value: { type: 'string' } } },
});

/** Without a parent: the main agent of that session. `asked`: its first user message. */
export function newAgent(
  world: World,
  from: Agent | { session: string },
  task: string,
  asked: string,
): Agent {
  const parent = 'self' in from ? from : null;
  const depth = parent ? parent.depth + 1 : 0;
  const spawns = depth < world.behaviour.children.maxDepth;
  const { phrases } = world.behaviour;
  const system = parent ? phrases.childSystem : phrases.mainSystem;
  return {
    self: {},
    id: parent ? `agent-${world.random.below(2 ** 31).toString(16)}` : null,
    parent: parent?.id ?? null,
    session: from.session,
    depth,
    task,
    tools: [...TOOL_NAMES, ...(spawns ? [phrases.agentTool] : []), ...(parent ? [] : ['todo'])].map(tool),
    history: [
      { role: 'system', text: `${system} Date ${world.words.some([2, 2])}.` },
      { role: 'user', text: asked },
    ],
    marks: [],
    last: null,
    next: null,
    returns: [],
    inbox: [],
    siblings: null,
    compacted: false,
    branch: false,
    hedged: false,
  };
}

export function branchOf(agent: Agent): Agent {
  return {
    ...agent,
    tools: [...agent.tools],
    history: [...agent.history],
    marks: [],
    inbox: [],
    branch: true,
  };
}

/** What leads to the agent's next call. */
export function inEdges(agent: Agent): InEdge[] {
  const base = agent.next ?? (agent.last === null ? [] : [{ from: agent.last, type: 'continue' as const }]);
  return [...base, ...agent.returns];
}

/** Tools beside an agent's first ones. More would only make long rollouts long to draw. */
const EXTRA_TOOLS = 8;

/** One more tool; of many the oldest goes. */
export function changeTools(agent: Agent, number: number): void {
  const extra = agent.tools.filter(({ name }) => name.startsWith('extra_'));
  if (extra.length >= EXTRA_TOOLS) agent.tools.splice(agent.tools.indexOf(extra[0]!), 1);
  agent.tools.push(tool(`extra_${number}`));
}
