import type { Message, ReplyPart, ToolCallPart } from '@treeward/messages';
import { unwrapToolText, unwrapUserText } from './wrapping.js';

/** What one harness does to calls and results beyond what all of them do. */
export interface CanonicalRules {
  /** The harness rewrites calls in its history; must send what was sampled and what came back to one form. Idempotent. */
  call?(call: ToolCallPart): ToolCallPart;
  /** A user message without what the harness adds to it; empty: it goes. Idempotent. */
  user?(text: string): string;
  /** Runs once per result, before the shared rules. `call` is the call it answers, if the conversation has it. */
  result?(text: string, call: ToolCallPart | undefined): { text: string; isError?: boolean };
}

const ORDINAL = /^#(?:\d+|\?)$/;

/**
 * Builds a harness's `canonicalise`. Call ids become ordinals (`#0`, `#1`, …): harnesses rewrite them, and an ordinal on
 * a result also says that its text has been cleaned already, so that a file of numbered lines is not stripped twice.
 */
export function canonicaliser(rules: CanonicalRules = {}): (messages: readonly Message[]) => Message[] {
  return (messages) => {
    const ordinals = new Map<string, string>();
    const calls = new Map<string, ToolCallPart>();
    let count = 0;

    const part = (item: ReplyPart): ReplyPart => {
      if (item.type === 'text') return item;
      const id = `#${count++}`;
      const call = { ...(rules.call ? rules.call(item) : item), id };
      ordinals.set(item.id, id);
      calls.set(item.id, call);
      return call;
    };

    return messages.flatMap((message): Message[] => {
      switch (message.role) {
        case 'system':
          return []; // the compact template drops every system prompt alike
        case 'user': {
          const text = unwrapUserText(rules.user?.(unwrapUserText(message.text)) ?? message.text);
          return text === '' ? [] : [{ role: 'user', text }];
        }
        case 'assistant':
          return [{ role: 'assistant', parts: message.parts.map(part) }];
        case 'tool': {
          const callId = ordinals.get(message.callId) ?? '#?';
          if (ORDINAL.test(message.callId)) return [{ ...message, callId }];
          const special = rules.result?.(message.text, calls.get(message.callId)) ?? { text: message.text };
          const isError = message.isError ?? special.isError ?? false;
          return [
            { role: 'tool', callId, text: unwrapToolText(special.text), ...(isError && { isError: true }) },
          ];
        }
      }
    });
  };
}
