import type { Json, RecordEvent, TranscriptAgent } from '@treeward/telemetry';
import { describe, expect, it } from 'vitest';
import { edgesOf, recoverTalkBeside, says, tool, user, type Spoken } from '../testing/talk.js';
import type { RolloutTree } from '../types.js';

const use = (id: string, argument: string, name = 'agent'): Json => ({
  role: 'assistant',
  parts: [{ type: 'tool_call', id, name, arguments: { argument } }],
});
const task = user('look after the two services');
const first = use('call_1', 'find out why the mail server is slow');
const second = use('call_2', 'find out why the web server is slow');
const main = { identity: { session: 's' } } as const;
const answer = says('It waits for the name server all the time.');

// A reply starts an agent in the background, the next one another; both may have started the one that calls now.
const parents: Spoken[] = [
  { messages: [task], reply: first, start: 0, finish: 1000, ...main },
  { messages: [task, first, tool('started')], reply: second, start: 1100, finish: 2000, ...main },
];
const child = (identity: Spoken['identity'] | null, said = 'You know what to do.'): Spoken => ({
  messages: [user(said)],
  reply: answer,
  tools: ['exec'],
  start: 3000,
  finish: 4000,
  ...(identity && { identity }),
});
const named = child({ session: 's', agent: 'a1' });

const transcriptOf = (spawnedBy: string, heard = ''): RecordEvent => {
  const entry = { id: 'x', parent: null, time: null };
  const agents: TranscriptAgent[] = [
    {
      agent: '',
      parentAgent: null,
      spawnedBy: null,
      file: 'main.jsonl',
      entries: [
        { ...entry, kind: 'user', text: 'look after the two services' },
        { ...entry, kind: 'tool', text: heard },
      ],
    },
    {
      agent: 'a1',
      parentAgent: null,
      spawnedBy,
      file: 'a1.jsonl',
      entries: [
        { ...entry, kind: 'user', text: 'You know what to do.' },
        { ...entry, kind: 'assistant', parts: (answer as { parts: Json[] }).parts },
      ],
    },
  ];
  return { type: 'transcript', time: 9000, agents };
};
const spawns = (tree: RolloutTree): string[] => edgesOf(tree).filter((edge) => edge.includes('spawn'));
const evidence = (tree: RolloutTree, type: string): readonly string[] =>
  tree.edges.find((edge) => edge.type === type)!.evidence;
const confidence = (tree: RolloutTree, type: string): number =>
  tree.edges.find((edge) => edge.type === type)!.confidence;

describe('the transcript', () => {
  it('chooses between two replies that may have started an agent', () => {
    const without = recoverTalkBeside([], ...parents, named);
    expect(spawns(without)).toEqual(['1 spawn 2']);
    // Written without punctuation, as some harnesses do.
    const tree = recoverTalkBeside([transcriptOf('call1')], ...parents, named);
    expect(spawns(tree)).toEqual(['0 spawn 2']);
    expect(evidence(tree, 'spawn')).toContain('transcript');
  });

  it('says so where it agrees, and lowers the confidence where it does not', () => {
    const told = child({ session: 's', agent: 'a1' }, 'find out why the web server is slow');
    const alone = recoverTalkBeside([], ...parents, told);
    const agrees = recoverTalkBeside([transcriptOf('call_2')], ...parents, told);
    expect(spawns(agrees)).toEqual(['1 spawn 2']);
    expect(evidence(agrees, 'spawn')).toEqual([...evidence(alone, 'spawn'), 'transcript']);
    expect(confidence(agrees, 'spawn')).toBe(confidence(alone, 'spawn'));
    const differs = recoverTalkBeside([transcriptOf('call_9')], ...parents, told);
    expect(spawns(differs)).toEqual(['1 spawn 2']);
    expect(evidence(differs, 'spawn')).toContain('transcript-against');
    expect(confidence(differs, 'spawn')).toBeLessThan(confidence(alone, 'spawn'));
  });

  it('never makes up an edge that nothing else speaks for', () => {
    const tree = recoverTalkBeside([transcriptOf('call_1')], ...parents, child(null));
    expect(spawns(tree)).toEqual([]);
  });

  it('confirms a return whose text was cut away in the prompt', () => {
    const asked = { messages: [task], reply: first, start: 0, finish: 1000, ...main };
    const back: Spoken = {
      messages: [task, first, tool('[truncated]')],
      reply: says('Done.'),
      start: 5000,
      finish: 6000,
      ...main,
    };
    const agent = child({ session: 's', agent: 'a1' }, 'find out why the mail server is slow');
    const without = recoverTalkBeside([], asked, agent, back);
    expect(evidence(without, 'return')).toEqual(['result-place']);
    const heard = 'Agent said: It waits for the name server all the time.';
    const tree = recoverTalkBeside([transcriptOf('call_1', heard)], asked, agent, back);
    expect(edgesOf(tree)).toEqual(edgesOf(without));
    expect(evidence(tree, 'return')).toEqual(['result-place', 'transcript']);
  });
});

describe('a command that ran', () => {
  const one = use('call_1', 'run-agent --fast', 'exec');
  const two = use('call_2', 'run-agent --slow', 'exec');
  const branch = (text: string, reply: Json, start: number): Spoken => ({
    messages: [task, says('Two ways.'), user(text)],
    reply,
    start,
    finish: start + 500,
    ...main,
  });
  const calls: Spoken[] = [
    { messages: [task], reply: says('Two ways.'), start: 0, finish: 1000, ...main },
    branch('the one', one, 1100),
    branch('the other', two, 1200),
    named,
  ];
  const ran = (command: string, start: number, end: number): RecordEvent => ({
    type: 'tool.exec',
    source: 'strace',
    command,
    start,
    end,
    code: 0,
  });

  it('chooses the tool call in which an agent began', () => {
    expect(spawns(recoverTalkBeside([], ...calls))).toEqual(['2 spawn 3']);
    const commands = [ran('sh -c run-agent --fast', 1700, 4200), ran('sh -c run-agent --slow', 1800, 2000)];
    const tree = recoverTalkBeside(commands, ...calls);
    expect(spawns(tree)).toEqual(['1 spawn 3']);
    expect(evidence(tree, 'spawn')).toContain('exec');
  });

  it('never makes up an edge that nothing else speaks for', () => {
    const commands = [ran('sh -c run-agent --fast', 1700, 4200)];
    expect(spawns(recoverTalkBeside(commands, ...calls.slice(0, 3), child(null)))).toEqual([]);
  });
});
