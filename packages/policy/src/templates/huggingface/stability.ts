import type { Message, ToolSpec } from '@treeward/messages';

interface Probe {
  /** What deviates when this probe does. */
  name: string;
  tools: readonly ToolSpec[];
  messages: readonly Message[];
}

const user = (text: string): Message => ({ role: 'user', text });
const system: Message = { role: 'system', text: 'Be brief.' };
const said = (text: string): Message => ({ role: 'assistant', parts: [{ type: 'text', text }] });
const called = (...names: string[]): Message => ({
  role: 'assistant',
  parts: names.map((name, i) => ({
    type: 'tool_call',
    id: `call0000${i}`,
    name,
    arguments: { path: 'a.txt', n: 2 },
  })),
});
const result = (i: number, text: string): Message => ({ role: 'tool', callId: `call0000${i}`, text });
const tool: ToolSpec = {
  name: 'read',
  description: 'Reads a file.',
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' }, n: { type: 'integer' } },
    required: ['path'],
  },
};

/** Conversations whose every beginning is rendered both ways. */
export const PROBES: readonly Probe[] = [
  {
    name: 'a conversation without tools',
    tools: [],
    messages: [user('Hello.'), said('Hi.'), user('Go on.')],
  },
  {
    name: 'a system message without tools',
    tools: [],
    messages: [system, user('Hello.'), said('Hi.'), user('Go on.')],
  },
  { name: 'tools', tools: [tool], messages: [user('Read a.txt.')] },
  { name: 'tools and a system message', tools: [tool], messages: [system, user('Read a.txt.')] },
  {
    name: 'a tool result',
    tools: [tool],
    messages: [user('Read a.txt.'), called('read'), result(0, 'text')],
  },
  {
    name: 'a turn after a tool result',
    tools: [tool],
    messages: [
      user('Read a.txt.'),
      called('read'),
      result(0, 'text'),
      said('It says text.'),
      user('Thanks.'),
    ],
  },
  {
    name: 'several tool steps',
    tools: [tool],
    messages: [user('Read.'), called('read'), result(0, 'a'), called('read'), result(0, 'b')],
  },
  {
    name: 'several tool results in a row',
    tools: [tool],
    messages: [user('Read.'), called('read', 'read'), result(0, 'a'), result(1, 'b')],
  },
];
