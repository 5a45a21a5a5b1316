import type { Json, TranscriptAgent, TranscriptEntry } from '@treeward/telemetry';
import { callPart, entryList, textPart } from '../transcripts/entries.js';
import { jsonLines, listOf, loose, stringOf, textOf, timeOf, type Loose } from '../transcripts/lines.js';

const KINDS: Readonly<Record<string, TranscriptEntry['kind']>> = {
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
};

/** A line per message, numbered here; a discarded reply is an entry beside the one that took its place. */
export function parseLoopTranscript(files: ReadonlyMap<string, Uint8Array>): TranscriptAgent[] {
  return [...files].map(([file, bytes]) => {
    const list = entryList();
    let parent: string | null = null;
    let count = 0;
    const add = (message: Loose, time: number | null, discarded: boolean): void => {
      const kind = KINDS[stringOf(message['role']) ?? ''] ?? 'other';
      const id = String(count++);
      if (kind === 'assistant' || discarded) {
        list.add({ id, parent, time, kind: 'assistant', parts: partsOf(message) });
      } else list.add({ id, parent, time, kind, text: textOf(message['content']) });
      if (!discarded) parent = id;
    };
    for (const line of jsonLines(bytes)) {
      const time = timeOf(line['time']);
      if (line['type'] === 'session')
        for (const message of listOf(line['messages'])) add(message, time, false);
      if (line['type'] === 'message') add(loose(line['message']), time, false);
      if (line['type'] === 'discarded') add(loose(line['message']), time, true);
    }
    return { agent: '', parentAgent: null, spawnedBy: null, file, entries: list.entries };
  });
}

function partsOf(message: Loose): Json[] {
  const text = textOf(message['content']);
  const calls = listOf(message['tool_calls']).map((call) => {
    const called = loose(call['function']);
    return callPart(stringOf(call['id']) ?? '', stringOf(called['name']) ?? '', called['arguments']);
  });
  return [...(text ? [textPart(text)] : []), ...calls];
}
