// The smallest MCP server by stdio: one tool, `secret`, that answers what no model can guess.
import { createInterface } from 'node:readline';

const TOOLS = [
  {
    name: 'secret',
    description: 'Tells the secret of a name.',
    inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  },
];

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'secret', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: TOOLS }),
  'tools/call': ({ arguments: args }) => ({
    content: [{ type: 'text', text: `${process.env.SECRET ?? 'none'} of ${args?.name}` }],
  }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line.trim() === '') return;
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return; // a notification
  const answer = answers[method];
  const body = answer
    ? { result: answer(params ?? {}) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
});
