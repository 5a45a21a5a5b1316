import { Template } from '@huggingface/jinja';
import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import { TreewardError } from '@treeward/base';
import type { ControlSession, ControlText, Rendered } from './control-text.js';

/** What stands where the conversation's own text does not matter. */
const USER: Message = { role: 'user', text: 'P' };
const CALL: Message = {
  role: 'assistant',
  parts: [{ type: 'tool_call', id: 'call00000', name: 'f', arguments: { x: 'P' } }],
};

/** @throws TreewardError TEMPLATE_E_UNSTABLE */
export function unstable(where: string, why: string): TreewardError {
  return new TreewardError('TEMPLATE_E_UNSTABLE', `${where}: ${why}`, {
    data: { where },
    hints: [
      'prompts are grown by appending, so each message must add tokens behind the earlier ones and change none of them',
      'choose `variant: "stable"` if the deviation is one that it accepts, or give another `chatTemplate`',
    ],
  });
}

/**
 * Takes a jinja chat template, which renders whole conversations, apart into pieces that depend on one message each, by rendering
 * conversations that differ in that message only. Whatever follows the token that ends a reply (Qwen: a line break) is moved in front of
 * the next piece: a sampled reply ends with its end token, and what is appended must follow it directly.
 */
export class ChatPieces {
  readonly #template: Template;
  readonly #control: ControlText;
  readonly #variables: Readonly<Record<string, unknown>>;
  readonly #start: string;
  readonly #afterCall: string;
  readonly #user: string;
  readonly #generation: string;
  readonly #tail: string;

  /** @throws TreewardError TEMPLATE_E_FILE, TEMPLATE_E_UNSTABLE, TEMPLATE_E_RENDER */
  constructor(source: string, control: ControlText, variables: Readonly<Record<string, unknown>>) {
    this.#template = jinja(source);
    this.#control = control;
    this.#variables = variables;
    const probe = control.session();
    this.#start = this.#whole([USER], [], false, probe);
    const two = this.#whole([USER, USER], [], false, probe);
    this.#user = behind(this.#start, two, 'a second user message');
    const open = this.#whole([USER], [], true, probe);
    this.#generation = behind(this.#start, open, 'the generation prompt');
    if (this.#generation === '')
      throw unstable('the generation prompt', 'is empty, or there without being asked for');
    const answered = this.#whole(
      [USER, { role: 'assistant', parts: [{ type: 'text', text: 'P' }] }, USER],
      [],
      false,
      probe,
    );
    const reply = this.#reply(answered);
    this.#tail = textBehindLastControl(control, reply);
    this.#afterCall = before(
      this.#user,
      this.#whole([USER, CALL, USER], [], false, probe),
      'a message behind a call',
    );
  }

  /** Id of the token that ends a reply. */
  get end(): number {
    const pieces = this.#control
      .session()
      .cut(this.#replyText([{ type: 'text', text: 'P' }], this.#control.session()));
    const last = pieces.at(-1);
    if (typeof last !== 'number') throw unstable('a reply', 'does not end with a control token');
    return last;
  }

  get generation(): Rendered[] {
    return this.#control.session().cut(this.#tail + this.#generation);
  }

  head(tools: readonly ToolSpec[]): Rendered[] {
    const session = this.#control.session();
    const text = before(this.#user, this.#whole([USER], tools, false, session), 'the tools');
    return session.cut(text === '' ? '' : this.#withoutTail(text, 'the tools'));
  }

  message(message: Message): Rendered[] {
    const session = this.#control.session();
    if (message.role === 'assistant') {
      return session.cut(this.#tail + this.#generation + this.#replyText(message.parts, session));
    }
    const tool = message.role === 'tool';
    const whole = this.#whole(tool ? [USER, CALL, message, USER] : [USER, message, USER], [], false, session);
    const where = `a ${message.role} message`;
    const text = before(this.#user, behind(tool ? this.#afterCall : this.#start, whole, where), where);
    return session.cut(this.#tail + this.#withoutTail(text, where));
  }

  reply(parts: readonly ReplyPart[]): Rendered[] {
    const session = this.#control.session();
    return session.cut(this.#replyText(parts, session));
  }

  /** The whole conversation as the template itself renders it, for comparison. Null when it refuses to. */
  whole(messages: readonly Message[], tools: readonly ToolSpec[]): Rendered[] | null {
    const session = this.#control.session();
    try {
      return session.cut(this.#whole(messages, tools, true, session));
    } catch (error) {
      if (TreewardError.isInstance(error) && error.code === 'TEMPLATE_E_RENDER') return null;
      throw error;
    }
  }

  #replyText(parts: readonly ReplyPart[], session: ControlSession): string {
    try {
      return this.#withoutTail(
        this.#reply(this.#whole([USER, { role: 'assistant', parts: [...parts] }, USER], [], false, session)),
        'a reply',
      );
    } catch (error) {
      if (!TreewardError.isInstance(error) || error.code !== 'TEMPLATE_E_RENDER' || parts.length < 2)
        throw error;
      // Llama 3 renders one call per turn: several are shown as several turns.
      return parts.map((part) => this.#replyText([part], session)).join(this.#tail + this.#generation);
    }
  }

  #reply(whole: string): string {
    const text = before(this.#user, behind(this.#start, whole, 'a reply'), 'a reply');
    return behind(this.#generation, text, 'a reply');
  }

  #withoutTail(text: string, where: string): string {
    return before(this.#tail, text, where);
  }

  #whole(
    messages: readonly Message[],
    tools: readonly ToolSpec[],
    generation: boolean,
    session: ControlSession,
  ): string {
    try {
      return this.#template.render({
        ...this.#variables,
        messages: messages.map((message) => jinjaMessage(message, session)),
        ...(tools.length > 0 ? { tools: tools.map((tool) => jinjaTool(tool, session)) } : {}),
        add_generation_prompt: generation,
      });
    } catch (cause) {
      throw new TreewardError(
        'TEMPLATE_E_RENDER',
        `the chat template refuses ${messages.map(({ role }) => role).join(', ')}: ${(cause as Error).message}`,
        { cause, data: { roles: messages.map(({ role }) => role) } },
      );
    }
  }
}

/** @throws TreewardError TEMPLATE_E_FILE */
function jinja(source: string): Template {
  try {
    return new Template(source);
  } catch (cause) {
    const { message } = cause as Error;
    throw new TreewardError('TEMPLATE_E_FILE', `the chat template is not jinja: ${message}`, { cause });
  }
}

function jinjaMessage(message: Message, session: ControlSession): Record<string, unknown> {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: session.hide(message.text) };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: session.hide(message.text) };
    case 'assistant': {
      const content = message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
      const calls = message.parts.flatMap((part) =>
        part.type === 'tool_call'
          ? [
              {
                id: part.id,
                type: 'function',
                function: hideIn({ name: part.name, arguments: part.arguments }, session),
              },
            ]
          : [],
      );
      return {
        role: 'assistant',
        content: session.hide(content),
        ...(calls.length > 0 ? { tool_calls: calls } : {}),
      };
    }
  }
}

const jinjaTool = (tool: ToolSpec, session: ControlSession): unknown =>
  hideIn(
    {
      type: 'function',
      function: { name: tool.name, description: tool.description, parameters: tool.parameters },
    },
    session,
  );

function hideIn(value: unknown, session: ControlSession): unknown {
  if (typeof value === 'string') return session.hide(value);
  if (Array.isArray(value)) return value.map((item) => hideIn(item, session));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [session.hide(key), hideIn(inner, session)]),
  );
}

function behind(prefix: string, whole: string, where: string): string {
  if (whole.startsWith(prefix)) return whole.slice(prefix.length);
  throw unstable(where, `changes what stands before it (${difference(prefix, whole)})`);
}

function before(suffix: string, whole: string, where: string): string {
  if (whole.endsWith(suffix)) return whole.slice(0, whole.length - suffix.length);
  throw unstable(where, `changes what stands behind it (expected … to end with ${JSON.stringify(suffix)})`);
}

function difference(expected: string, actual: string): string {
  let at = 0;
  while (at < expected.length && expected[at] === actual[at]) at++;
  const show = (text: string): string => JSON.stringify(text.slice(at, at + 40));
  return `expected ${show(expected)}, found ${show(actual)}`;
}

function textBehindLastControl(control: ControlText, text: string): string {
  const last = control.session().cut(text).at(-1);
  return typeof last === 'string' ? last : '';
}
