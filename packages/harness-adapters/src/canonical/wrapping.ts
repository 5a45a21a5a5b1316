/**
 * What every harness wraps around the texts that matter, taken off by one rule for all of them. Each function is
 * idempotent: the gateway may hand back what it was given.
 */

/** Longer reminders are manuals (tool lists, git rules): they would fill the context of a small policy. */
const LONGEST_NOTE = 200;

const REMINDER = /<system-reminder>((?:(?!<system-reminder>)[\s\S])*?)<\/system-reminder>/g;

/** A short `<system-reminder>` becomes a line `[note] …`, a long one goes. */
export function unwrapReminders(text: string): string {
  let before;
  let after = text;
  // Innermost first, until nothing changes: what is left over may close around the gap.
  do {
    before = after;
    after = before.replace(REMINDER, (_, inner: string) => {
      const note = inner.trim();
      return note === '' || note.length >= LONGEST_NOTE ? '' : `\n[note] ${note}`;
    });
  } while (after !== before);
  return after;
}

/** Absolute paths below the workspace become relative ones; the workspace itself stays, it has no shorter name. */
export function relativePaths(text: string, workspace = '/workspace'): string {
  const escaped = workspace.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return text.replace(new RegExp(`(?<![\\w./~-])${escaped}/+(?=[^\\s/])`, 'g'), '');
}

/** Both, and no blank ends: a block that went leaves its line break behind. */
export function unwrapUserText(text: string): string {
  return relativePaths(unwrapReminders(text)).trim();
}

/** As for the user, but the white space of a file's content stays unless a reminder stood there. */
export function unwrapToolText(text: string): string {
  const plain = unwrapReminders(text);
  return relativePaths(plain === text ? text : plain.trim());
}
