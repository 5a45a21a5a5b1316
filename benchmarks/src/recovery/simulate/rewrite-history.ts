import type { Message } from '@treeward/messages';
import type { Agent } from './agent.js';
import { phrase } from './behaviour.js';
import type { World } from './world.js';

/** Renders the history anew: roles and reply texts keep their order, the messages are others. */
export function rewriteHistory(world: World, agent: Agent): void {
  const kind = world.random.pick(world.behaviour.rewrite.kinds);
  // The newest turn stays as it is: it is what the next call answers.
  const lastReply = agent.history.findLastIndex(({ role }) => role === 'assistant');
  const old = agent.history.slice(0, lastReply);
  const made = RENDER[kind](old, world.behaviour.phrases);
  if (made === null) return;
  agent.history = [...made, ...agent.history.slice(lastReply)];
  agent.marks = [];
  agent.next = [{ from: agent.last!, type: 'rewrite' }];
}

/** Words of a result that trimming leaves. */
const KEPT_WORDS = 6;

type Kind = World['behaviour']['rewrite']['kinds'][number];

/** Null when there is nothing that this kind would change. */
const RENDER: Readonly<
  Record<Kind, (old: readonly Message[], phrases: World['behaviour']['phrases']) => Message[] | null>
> = {
  /** Earlier replies become one message of their texts; calls and results go. */
  merge(old, { mergedBy }) {
    const texts = old.flatMap((message) =>
      message.role === 'assistant'
        ? message.parts.flatMap((part) => (part.type === 'text' && part.text !== '' ? [part.text] : []))
        : [],
    );
    if (texts.length < 2) return null;
    const first = old.findIndex(({ role }) => role === 'assistant');
    return [
      ...old.slice(0, first),
      { role: 'assistant', parts: [{ type: 'text', text: texts.join(mergedBy) }] },
    ];
  },

  /** Old results give way to a placeholder. */
  elide(old, { elided }) {
    if (!old.some((message) => message.role === 'tool' && message.text.length > 20)) return null;
    return old.map((message) =>
      message.role === 'tool' && message.text.length > 20 ? { ...message, text: elided } : message,
    );
  },

  /** Of long old results only the beginning stays. */
  trim(old, { trimmed }) {
    const isLong = (message: Message): boolean =>
      message.role === 'tool' && message.text.split(' ').length > KEPT_WORDS;
    if (!old.some(isLong)) return null;
    return old.map((message) => {
      if (message.role !== 'tool' || !isLong(message)) return message;
      const begin = message.text.split(' ').slice(0, KEPT_WORDS).join(' ');
      return { ...message, text: phrase(trimmed, begin) };
    });
  },

  /** Every user text gets another wrapping. */
  envelope: (old, { envelope }) =>
    old.map((message) =>
      message.role === 'user' ? { role: 'user', text: phrase(envelope, message.text) } : message,
    ),

  /** Notes of the harness between turns go, all but the first user text. */
  'drop-prompts'(old) {
    const first = old.findIndex(({ role }) => role === 'user');
    const kept = old.filter(({ role }, index) => role !== 'user' || index === first);
    return kept.length === old.length ? null : kept;
  },
};
