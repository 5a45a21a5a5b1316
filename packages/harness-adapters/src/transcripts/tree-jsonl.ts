import type { Json, TranscriptEntry } from '@treeward/telemetry';
import { callPart, entryList, textPart } from './entries.js';
import { listOf, loose, stringOf, textOf, timeOf, type Loose } from './lines.js';

/**
 * The session files of pi, and of OpenClaw which grew from it: one object per line with `id` and `parentId`; messages,
 * compactions and bookkeeping.
 */
export function treeJsonlEntries(lines: readonly Loose[]): TranscriptEntry[] {
  const list = entryList();
  for (const line of lines) {
    const id = stringOf(line['id']);
    if (id === null || line['type'] === 'session') continue;
    const parent = stringOf(line['parentId']);
    const time = timeOf(line['timestamp']);
    if (line['type'] === 'compaction') {
      list.add({ id, parent, time, kind: 'compaction', text: stringOf(line['summary']) });
      continue;
    }
    const message = loose(line['message']);
    const kind = line['type'] === 'message' ? KINDS[stringOf(message['role']) ?? ''] : undefined;
    if (kind === undefined) list.skip(id, parent);
    else if (kind === 'assistant') list.add({ id, parent, time, kind, parts: partsOf(message['content']) });
    else list.add({ id, parent, time, kind, text: textOf(message['content']) });
  }
  return list.entries;
}

const KINDS: Readonly<Record<string, TranscriptEntry['kind']>> = {
  user: 'user',
  assistant: 'assistant',
  toolResult: 'tool',
};

function partsOf(content: unknown): Json[] {
  if (typeof content === 'string') return [textPart(content)];
  return listOf(content).flatMap((block): Json[] => {
    if (block['type'] === 'text') return [textPart(stringOf(block['text']) ?? '')];
    if (block['type'] !== 'toolCall') return [];
    return [callPart(stringOf(block['id']) ?? '', stringOf(block['name']) ?? '', block['arguments'])];
  });
}
