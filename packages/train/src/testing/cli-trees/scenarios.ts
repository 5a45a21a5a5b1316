import { nodeMount } from '@treeward/sandbox';
import {
  call,
  claudeCompaction,
  claudeSubagents,
  codexSubagent,
  faults,
  inOrder,
  openclawSubagents,
  opencodeSubagents,
  say,
  type Scenario,
} from '@treeward/harness-adapters/testing';
import { expectedTree, type NamedTree } from './named-tree.js';
import type { PlayOptions } from './play.js';
import { TOO_LONG } from './scripted-policy.js';

/** A scenario and the tree that it is by construction. */
export interface TreeScenario extends PlayOptions {
  scenario: Scenario;
  tree: NamedTree;
  /** Why the tree is another one without headers and transcript; where absent it is the same. */
  needsHeaders?: string;
}

const task = (prompt: string, more: Partial<Scenario['tasks'][number]> = {}): Scenario['tasks'][number] => ({
  prompt,
  maxTurns: 20,
  ...more,
});

/** 500, an overload and, unless the harness gives up on it, a broken stream, each before a turn. */
function faulty(
  harness: string,
  exec: { tool: string; argument: string },
  { drops = true, title = [] as string[] } = {},
): TreeScenario {
  const scenario = faults(harness, exec, { drops });
  const first = ['main.0', "main.0'", 'main.1', "main.1'", 'main.2'];
  return {
    scenario: {
      ...scenario,
      name: `${harness}: 500, 429${drops ? ', a broken stream' : ''}`,
    },
    tree: expectedTree({
      agents: [drops ? [...first, "main.2'"] : first],
      title,
      edges: [
        "main.0 retry main.0'",
        "main.0' continue main.1",
        "main.1 retry main.1'",
        "main.1' continue main.2",
        ...(drops ? ["main.2 retry main.2'"] : []),
      ],
      untrained: { 'reply lost by the gateway': ['main.0', 'main.1', ...(drops ? ['main.2'] : [])] },
    }),
  };
}

/** Both children at work at once. */
const SIDE_BY_SIDE = { 'A.0': ['B.0'], 'B.0': ['A.0'] };

const claude: TreeScenario[] = [
  {
    scenario: claudeSubagents(),
    waitsFor: SIDE_BY_SIDE,
    tree: expectedTree({
      agents: [
        ['main.0', 'main.1'],
        ['A.0', 'A.1'],
        ['B.0', 'B.1'],
        ['N.0', 'N.1'],
      ],
      edges: [
        'main.0 continue main.1',
        'A.0 continue A.1',
        'B.0 continue B.1',
        'N.0 continue N.1',
        'main.0 spawn A.0',
        'main.0 spawn B.0',
        'A.0 spawn N.0',
        'A.0 parallel B.0',
        'A.1 return main.1',
        'B.1 return main.1',
        'N.1 return A.1',
      ],
    }),
  },
  {
    // The last turn is kept beside the summary: what is summed up ends with the reply before it.
    scenario: claudeCompaction(),
    tree: expectedTree({
      agents: [['main.0', 'main.1', 'summary', "main.1'"]],
      edges: ['main.0 continue main.1', 'main.0 continue summary', "summary compaction main.1'"],
    }),
  },
  {
    scenario: {
      name: 'claude-code: 529 twice, and again within the work',
      harness: 'claude-code',
      tasks: [task('Say a word.')],
      script: inOrder([
        { status: 529 },
        { status: 529 },
        [call('Bash', { command: 'echo one > word.txt' })],
        { status: 529 },
        say('Done.'),
      ]),
      truth: { calls: { main: 5 }, edges: { retry: 3 }, agents: 0 },
    },
    tree: expectedTree({
      agents: [['main.0', "main.0'", "main.0''", 'main.1', "main.1'"]],
      edges: [
        "main.0 retry main.0'",
        "main.0' retry main.0''",
        "main.0'' continue main.1",
        "main.1 retry main.1'",
      ],
      untrained: { 'reply lost by the gateway': ['main.0', "main.0'", 'main.1'] },
    }),
  },
  faulty('claude-code', { tool: 'Bash', argument: 'command' }),
  {
    // Garbage arrives as text, and a text ends the run: it is trained like any other.
    scenario: {
      name: 'claude-code: a malformed reply ends a run, the next one goes on',
      harness: 'claude-code',
      tasks: [task('Say a word.'), task('Go on.', { resume: true })],
      script: (view) => {
        if (view.replies === 0) return say('[{"type":"tool_call","name":"Bash","arguments":{');
        return view.replies === 1 ? [call('Bash', { command: 'echo one' })] : say('Done.');
      },
      truth: { calls: { main: 3 }, edges: { retry: 0 }, agents: 0 },
    },
    tree: expectedTree({
      agents: [['main.0', 'main.1', 'main.2']],
      edges: ['main.0 continue main.1', 'main.1 continue main.2'],
      malformed: ['main.0'],
    }),
  },
];

/** Long enough that there is something to sum up. */
const LONG = 6;

const openclaw: TreeScenario[] = [
  ...(['small', 'all'] as const).map((tools): TreeScenario => ({
    scenario: {
      name: `openclaw: ${tools === 'small' ? 'four tools' : 'default tools'}, 500 and 429`,
      harness: 'openclaw',
      files: { 'notes.txt': 'alpha\n' },
      tasks: [task('Copy the notes.', { tools })],
      script: inOrder([
        { status: 500 },
        [call('read', { path: 'notes.txt' }), call('exec', { command: 'ls' })],
        { status: 429 },
        [call('write', { path: 'copy.txt', content: 'alpha' })],
        say('Done.'),
      ]),
      truth: { calls: { main: 5 }, edges: { retry: 2 }, agents: 0 },
    },
    tree: expectedTree({
      agents: [['main.0', "main.0'", 'main.1', "main.1'", 'main.2']],
      edges: [
        "main.0 retry main.0'",
        "main.0' continue main.1",
        "main.1 retry main.1'",
        "main.1' continue main.2",
      ],
      untrained: { 'reply lost by the gateway': ['main.0', 'main.1'] },
    }),
  })),
  {
    scenario: {
      name: 'openclaw: a prompt that is too long, compaction',
      harness: 'openclaw',
      tasks: [task('Count.')],
      script: (view) => {
        if (view.first.trimStart().startsWith('<conversation>')) return say('The numbers were counted.');
        if (view.call === LONG) return { status: TOO_LONG };
        return view.call < LONG
          ? [call('exec', { command: `seq ${view.call}0000 ${view.call}2999` })]
          : say('Done.');
      },
      truth: { calls: { main: 8, compaction: 2 }, edges: { compaction: 3 }, agents: 0 },
    },
    tree: expectedTree({
      agents: [
        [
          ...['main.0', 'main.1', 'main.2', 'main.3', 'main.4', 'main.5', 'main.6', 'summary'],
          ...["main.4'", "summary'"],
        ],
      ],
      edges: [
        'main.0 continue main.1',
        'main.1 continue main.2',
        'main.2 continue main.3',
        'main.3 continue main.4',
        // The fuller its window, the more old results it cuts out of the history.
        'main.4 rewrite main.5',
        'main.5 rewrite main.6',
        'main.6 compaction summary',
        "summary compaction main.4'",
        // Once it is done it sums up again, for the next message.
        "main.4' compaction summary'",
      ],
      untrained: { 'nothing sampled': ['main.6'] },
    }),
  },
  {
    // It foresees the end of its window. What is long is kept, so there is nothing in the request for a summary.
    scenario: {
      name: 'openclaw: results that fill the window, compaction',
      harness: 'openclaw',
      tasks: [task('Count.')],
      script: (view) => {
        if (view.first.trimStart().startsWith('<conversation>')) return say('The numbers were counted.');
        return view.call < 4
          ? [call('exec', { command: `seq ${view.call}0000 ${view.call}9999` })]
          : say('Done.');
      },
      truth: { calls: { main: 5, compaction: 1 }, edges: { compaction: 2 }, agents: 0 },
    },
    needsHeaders: 'a request for a summary that quotes nothing could be anything beside the work',
    tree: expectedTree({
      agents: [['main.0', 'main.1', 'main.2', 'main.3', 'summary', 'main.4']],
      edges: [
        'main.0 continue main.1',
        'main.1 continue main.2',
        'main.2 continue main.3',
        'main.3 compaction summary',
        'summary compaction main.4',
      ],
    }),
  },
  {
    scenario: {
      name: 'openclaw: a tool that there is not',
      harness: 'openclaw',
      tasks: [task('Do it.')],
      script: (view) => (view.call === 0 ? [call('fetch_moon', { phase: 'full' })] : say('Done.')),
      truth: { calls: { main: 2 }, edges: { retry: 1 }, agents: 0 },
    },
    tree: expectedTree({ agents: [['main.0', "main.0'"]], edges: ["main.0 retry main.0'"] }),
  },
  {
    scenario: openclawSubagents(),
    // A is heard first.
    waitsFor: { ...SIDE_BY_SIDE, 'B.1': ['main.2'] },
    tree: expectedTree({
      agents: [
        ['main.0', 'main.1', 'main.2', "main.2'"],
        ['A.0', 'A.1'],
        ['B.0', 'B.1'],
      ],
      edges: [
        'main.0 continue main.1',
        'main.1 continue main.2',
        'A.0 continue A.1',
        'B.0 continue B.1',
        'main.0 spawn A.0',
        'main.0 spawn B.0',
        'A.0 parallel B.0',
        'A.1 return main.2',
        "B.1 return main.2'",
        // Its history has one message of both replies, and no longer what A had said.
        "main.2 rewrite main.2'",
      ],
    }),
  },
];

const others: TreeScenario[] = [
  {
    scenario: codexSubagent(),
    tree: expectedTree({
      agents: [['main.0', 'main.1', 'main.2'], ['A.0']],
      edges: ['main.0 continue main.1', 'main.1 continue main.2', 'main.0 spawn A.0', 'A.0 return main.2'],
    }),
  },
  faulty('codex', { tool: 'exec_command', argument: 'cmd' }),
  faulty('pi', { tool: 'bash', argument: 'command' }),
  {
    scenario: opencodeSubagents(),
    waitsFor: SIDE_BY_SIDE,
    tree: expectedTree({
      agents: [
        ['main.0', 'main.1'],
        ['A.0', 'A.1'],
        ['B.0', 'B.1'],
      ],
      title: ['title'],
      edges: [
        'main.0 continue main.1',
        'A.0 continue A.1',
        'B.0 continue B.1',
        'main.0 spawn A.0',
        'main.0 spawn B.0',
        'A.0 parallel B.0',
        'A.1 return main.1',
        'B.1 return main.1',
      ],
    }),
  },
  faulty('opencode', { tool: 'bash', argument: 'command' }, { title: ['title'] }),
];

export const treeScenarios: readonly TreeScenario[] = [...claude, ...openclaw, ...others];

/** Claude Code calls a tool that the task brings along. */
export const taskServer = {
  server: { command: nodeMount().argv0, args: ['./server.mjs'], env: { SECRET: 'tangerine' } },
  scenario: {
    name: 'claude-code: a tool of the task itself',
    harness: 'claude-code',
    tasks: [task('Ask for the secret of Ann.')],
    mounts: [nodeMount().mount],
    script: (view) => (view.replies === 0 ? [call('mcp__oracle__secret', { name: 'Ann' })] : say(view.last)),
    truth: { calls: { main: 2 }, edges: {}, agents: 0 },
  } satisfies Scenario as Scenario,
};
