import type { ToolCallPart } from '@treeward/messages';
import { canonicaliser } from '../canonical/canonicaliser.js';

/** A call of a tool that does not exist stands in the history as a call of `invalid`, its arguments gone. */
function call(part: ToolCallPart): ToolCallPart {
  const { tool, error } = part.arguments;
  if (part.name !== 'invalid' || typeof tool !== 'string' || typeof error !== 'string') return part;
  return { ...part, name: tool, arguments: {} };
}

const FILE_VIEW = /^<path>[^\n]*<\/path>\n<type>file<\/type>\n<content>\n([\s\S]*)\n<\/content>([\s\S]*)$/;

function result(text: string, called: ToolCallPart | undefined): { text: string } {
  const view = called?.name === 'read' ? FILE_VIEW.exec(text) : null;
  if (!view) return { text };
  const body = view[1] ?? '';
  const end = /\n\n?\(End of file - total \d+ lines\)$/.exec(body);
  const lines = (end ? body.slice(0, end.index) : body)
    .split('\n')
    .map((line) => line.replace(/^ *\d+: /, ''));
  return { text: `${lines.join('\n')}${end ? '\n' : ''}${view[2] ?? ''}` };
}

export const canonicaliseOpencode = canonicaliser({ call, result });
