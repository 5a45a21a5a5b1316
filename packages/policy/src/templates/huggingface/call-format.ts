import { nestedTooDeep, type ReplyPart } from '@treeward/messages';

/** A reply without its end: text, a mark of the format (as its spelling), or another control token (as its id). */
export type ReplyPiece = { text: string } | { mark: string } | { control: number };

/** How a model family writes its calls. */
export interface CallFormat {
  readonly name: 'hermes' | 'llama3-json';
  /** Control tokens with a meaning in a reply. */
  readonly marks: readonly string[];
  /** Those that count as spelled text too where the vocabulary does not have them. */
  readonly spelled: readonly string[];
  parse(pieces: readonly ReplyPiece[]): { parts: ReplyPart[] } | { malformed: string };
}

/** Qwen and Hermes: an optional thought, text, then any number of `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. */
export const hermes: CallFormat = {
  name: 'hermes',
  marks: ['<tool_call>', '</tool_call>', '<think>', '</think>'],
  spelled: ['<tool_call>', '</tool_call>'],
  parse(pieces) {
    const rest = withoutThought(pieces);
    if (!rest) return { malformed: 'a thought that does not end' };
    const parts: ReplyPart[] = [];
    let text = '';
    for (let i = 0; i < rest.length; i++) {
      const piece = rest[i]!;
      if ('text' in piece) {
        if (parts.some(({ type }) => type === 'tool_call')) {
          if (piece.text.trim() !== '') return { malformed: 'text behind a call' };
        } else text += piece.text;
        continue;
      }
      if (!('mark' in piece) || piece.mark !== '<tool_call>') return { malformed: 'a stray control token' };
      const [body, end] = [rest[i + 1], rest[i + 2]];
      if (!body || !('text' in body) || !end || !('mark' in end) || end.mark !== '</tool_call>') {
        return { malformed: 'a call that does not end with </tool_call>' };
      }
      const call = readCall(body.text, 'arguments');
      if (typeof call === 'string') return { malformed: call };
      if (parts.length === 0 && text.trim() !== '')
        parts.push({ type: 'text', text: text.replace(/\n$/, '') });
      parts.push(call);
      i += 2;
    }
    return { parts: parts.length > 0 ? parts : [{ type: 'text', text }] };
  },
};

/** Llama 3: the whole reply is text, or one call `{"name": …, "parameters": {…}}`, bare or behind `<|python_tag|>`. */
export const llama3Json: CallFormat = {
  name: 'llama3-json',
  marks: ['<|python_tag|>'],
  spelled: [],
  parse(pieces) {
    const [first, ...others] = pieces;
    const tagged = first !== undefined && 'mark' in first;
    const body = tagged ? others : pieces;
    if (body.some((piece) => !('text' in piece))) return { malformed: 'a stray control token' };
    const text = body.map((piece) => ('text' in piece ? piece.text : '')).join('');
    // JSON may also be what the user asked for: only what names a function first is meant as a call.
    if (!tagged && !/^\s*\{\s*"name"\s*:/.test(text)) return { parts: [{ type: 'text', text }] };
    const call = readCall(text, 'parameters');
    return typeof call === 'string' ? { malformed: call } : { parts: [call] };
  },
};

/** The reply without a thought at its start; null when a thought does not end. */
function withoutThought(pieces: readonly ReplyPiece[]): readonly ReplyPiece[] | null {
  const start = pieces.findIndex((piece) => !('text' in piece) || piece.text.trim() !== '');
  const first = pieces[start];
  if (!first || !('mark' in first) || first.mark !== '<think>') return pieces;
  const end = pieces.findIndex((piece) => 'mark' in piece && piece.mark === '</think>');
  if (end < 0) return null;
  const [next, ...others] = pieces.slice(end + 1);
  if (!next || !('text' in next)) return next ? [next, ...others] : [];
  return [{ text: next.text.replace(/^\n+/, '') }, ...others];
}

function readCall(text: string, field: 'arguments' | 'parameters'): ReplyPart | string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'a call that is not JSON';
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return 'a call that is not an object';
  const { name, [field]: args } = json as Record<string, unknown>;
  if (typeof name !== 'string' || name === '') return 'a call without a name';
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    return `a call whose ${field} are not an object`;
  if (nestedTooDeep(args)) return `a call whose ${field} are nested too deeply`;
  return { type: 'tool_call', id: '', name, arguments: args as Record<string, unknown> };
}
