import { nestedTooDeep } from '@treeward/messages';
import type { Json, TranscriptEntry } from '@treeward/telemetry';
import { isLoose } from './lines.js';

const LONGEST_TEXT = 4000;

export interface EntryFacts {
  id: string;
  parent: string | null;
  time: number | null;
  kind: TranscriptEntry['kind'];
  text?: string | null;
  parts?: Json[];
}

/** Builds one agent's entries; an entry that is left out passes its parent on to those below it. */
export function entryList(): {
  entries: TranscriptEntry[];
  add(facts: EntryFacts): void;
  /** `id` is not an entry of its own: links to it lead to `target`. */
  skip(id: string, target: string | null): void;
  resolve(id: string | null): string | null;
} {
  const entries: TranscriptEntry[] = [];
  const targets = new Map<string, string | null>();
  const resolve = (id: string | null): string | null => {
    let at = id;
    for (let hops = 0; at !== null && targets.has(at) && hops <= targets.size; hops++) {
      at = targets.get(at) ?? null;
    }
    return at;
  };
  return {
    entries,
    resolve,
    skip: (id, target) => {
      if (id !== target) targets.set(id, target);
    },
    add: ({ id, parent, time, kind, text, parts }) => {
      entries.push({
        id,
        parent: resolve(parent),
        time,
        kind,
        ...(text != null && { text: text.slice(0, LONGEST_TEXT) }),
        ...(parts && { parts }),
      });
    },
  };
}

export const textPart = (text: string): Json => ({ type: 'text', text });

/** A reply part as `messages` has it. Arguments as an object or as the JSON text of one. */
export function callPart(id: string, name: string, args: unknown): Json {
  let value: unknown = args;
  if (typeof args === 'string') {
    try {
      value = JSON.parse(args);
      if (nestedTooDeep(value)) value = { input: args };
    } catch {
      value = { input: args };
    }
  }
  return { type: 'tool_call', id, name, arguments: (isLoose(value) ? value : {}) as { [key: string]: Json } };
}
