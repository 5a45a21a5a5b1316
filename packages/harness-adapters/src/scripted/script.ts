import type { Message, ReplyPart } from '@treeward/messages';

/** What the model does instead of answering. */
export type Fault =
  | { status: number; retryAfter?: number }
  /** The connection dies after the stream has begun. */
  | { drop: true };

/** A turn, or a fault. */
export type Scripted = readonly ReplyPart[] | Fault;

/** All that a script may look at: it can be read off a request, and off the tokens of a prompt just as well. */
export interface ScriptView {
  /** First user message. */
  first: string;
  /** Last user message or tool result. */
  last: string;
  /** Assistant messages before. */
  replies: number;
  /** Arrival number among the requests that the script answers. */
  call: number;
}

/** Must depend on its argument only: calls of parallel agents arrive in any order. */
export type Script = (view: ScriptView) => Scripted;

export const say = (text: string): ReplyPart[] => [{ type: 'text', text }];

export const call = (name: string, args: Record<string, unknown>): ReplyPart => ({
  type: 'tool_call',
  id: '',
  name,
  arguments: args,
});

/** By arrival; after the last one every call is refused. */
export const inOrder =
  (turns: readonly Scripted[]): Script =>
  (view) =>
    turns[view.call] ?? { status: 400 };

/** `messages` as the harness's canonicaliser leaves them. */
export function scriptView(messages: readonly Message[], arrival: number): ScriptView {
  const texts = messages.flatMap((message) =>
    message.role === 'user' || message.role === 'tool' ? [message] : [],
  );
  return {
    first: texts.find(({ role }) => role === 'user')?.text ?? '',
    last: texts.at(-1)?.text ?? '',
    replies: messages.filter(({ role }) => role === 'assistant').length,
    call: arrival,
  };
}
