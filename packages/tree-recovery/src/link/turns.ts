import type { MessageNode } from '../message-tree.js';
import { similarity, withoutVolatile } from './texts.js';

/** Texts of two renderings of one message share at least this much. */
const SIMILAR = 0.7;
/** A reply that a harness changed in its history shares at least this much with what was sampled. */
const EDITED = 0.5;

/** What asks a model to sum up a conversation. */
const SUMMARY = /summar|\bsum(?:s|med|ming)? up\b|\brecap|compact(?:ed|ion|ing)?\b|condens/i;

export function asksForSummary(text: string): boolean {
  return SUMMARY.test(text);
}

/** The same turn but for text that changes by itself: times, counters, ids. */
export function sameButVolatile(a: readonly MessageNode[], b: readonly MessageNode[]): boolean {
  return (
    a.length === b.length &&
    a.length > 0 &&
    a.every((message, i) => {
      const other = b[i]!;
      return (
        message.role === other.role &&
        (message.text === other.text || withoutVolatile(message.text) === withoutVolatile(other.text))
      );
    })
  );
}

/**
 * Does `b` ask what `a` asked, perhaps with something put behind it? Enough only where `a` got no usable answer. `opens`: a
 * conversation begins here; two agents may be told nearly the same then.
 */
export function asksAgain(a: readonly MessageNode[], b: readonly MessageNode[], opens: boolean): boolean {
  if (a.length === 0 || a.length > b.length) return false;
  const added = b.slice(a.length);
  if (added.some(({ role }) => role !== 'user')) return false;
  if (asksForSummary(added.map(({ text }) => text).join('\n'))) return false;
  return a.every((message, i) => {
    const other = b[i]!;
    if (message.role !== other.role) return false;
    if (message.text === other.text) return true;
    if (asksForSummary(other.text) && !asksForSummary(message.text)) return false;
    if (other.text.includes(message.text)) return true;
    return opens
      ? withoutVolatile(message.text) === withoutVolatile(other.text)
      : similarity(message.text, other.text) >= SIMILAR;
  });
}

/** Is the assistant message in a history this reply, trimmed or otherwise touched? */
export function isEdited(
  message: MessageNode,
  reply: { text: string; uses: readonly { text: string }[] },
): boolean {
  const whole = (of: { text: string; uses: readonly { text: string }[] }): string =>
    [of.text, ...of.uses.map(({ text }) => text)].join('\n').trim();
  const [a, b] = [whole(message), whole(reply)];
  if (a === '' || b === '') return false;
  return a.includes(b) || b.includes(a) || similarity(a, b) >= EDITED;
}
