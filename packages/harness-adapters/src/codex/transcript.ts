import type { TranscriptAgent, TranscriptEntry } from '@treeward/telemetry';
import { callPart, entryList, textPart } from '../transcripts/entries.js';
import {
  jsonLines,
  jsonObject,
  listOf,
  loose,
  stringOf,
  textOf,
  timeOf,
  type Loose,
} from '../transcripts/lines.js';

/** One `rollout-<time>-<thread>.jsonl` per thread. */
export function parseCodexTranscript(files: ReadonlyMap<string, Uint8Array>): TranscriptAgent[] {
  const threads = [...files].map(([file, bytes]) => ({ file, lines: jsonLines(bytes) }));
  const spawns = new Map(threads.flatMap(({ lines }) => lines.flatMap(spawnOf)));
  return threads
    .map(({ file, lines }): TranscriptAgent => {
      const meta = loose(lines.find((line) => line['type'] === 'session_meta')?.['payload']);
      const thread = stringOf(meta['id']) ?? '';
      const session = stringOf(meta['session_id']) ?? thread;
      const spawn = loose(loose(loose(meta['source'])['subagent'])['thread_spawn']);
      const parent = stringOf(spawn['parent_thread_id']) ?? stringOf(meta['parent_thread_id']);
      const child = thread !== session || parent !== null;
      return {
        agent: child ? thread : '',
        parentAgent: !child ? null : parent === null || parent === session ? '' : parent,
        spawnedBy: spawns.get(thread) ?? null,
        file,
        entries: entriesOf(lines),
      };
    })
    .sort((a, b) => Number(a.agent !== '') - Number(b.agent !== ''));
}

/** `[thread of the child, id of the call that started it]` */
function spawnOf(line: Loose): [string, string][] {
  const item = loose(line['payload']);
  if (item['type'] !== 'function_call_output') return [];
  const thread = stringOf(jsonObject(Buffer.from(stringOf(item['output']) ?? ''))['agent_id']);
  const call = stringOf(item['call_id']);
  return thread !== null && call !== null ? [[thread, call]] : [];
}

/** Items in order, no parents: a thread is a line. The items of one reply follow each other and become one entry. */
function entriesOf(lines: readonly Loose[]): TranscriptEntry[] {
  const list = entryList();
  let reply: TranscriptEntry | undefined;
  for (const [index, line] of lines.entries()) {
    const item = loose(line['payload']);
    // A usage record ends a reply: two replies may follow each other without a tool between them.
    if (line['type'] === 'token_usage_record') reply = undefined;
    if (line['type'] !== 'response_item' && line['type'] !== 'compacted') continue;
    const facts = {
      id: stringOf(item['id']) ?? String(index),
      parent: list.entries.at(-1)?.id ?? null,
      time: timeOf(line['timestamp']),
    };
    const part = partOf(item);
    if (line['type'] === 'compacted') {
      list.add({ ...facts, kind: 'compaction', text: stringOf(item['message']) });
    } else if (part !== null && reply) {
      reply.parts = [...(reply.parts ?? []), part];
      continue;
    } else if (part !== null) {
      list.add({ ...facts, kind: 'assistant', parts: [part] });
      reply = list.entries.at(-1);
      continue;
    } else if (item['type'] === 'function_call_output' || item['type'] === 'custom_tool_call_output') {
      list.add({ ...facts, kind: 'tool', text: textOf(item['output']) });
    } else if (item['type'] === 'message') {
      list.add({ ...facts, kind: item['role'] === 'user' ? 'user' : 'other', text: textOf(item['content']) });
    } else continue;
    reply = undefined;
  }
  return list.entries;
}

function partOf(item: Loose): ReturnType<typeof textPart> | null {
  const id = stringOf(item['call_id']) ?? '';
  const namespace = stringOf(item['namespace']);
  const name = `${namespace === null ? '' : `${namespace}__`}${stringOf(item['name']) ?? ''}`;
  if (item['type'] === 'function_call') return callPart(id, name, item['arguments']);
  if (item['type'] === 'custom_tool_call') return callPart(id, name, { input: item['input'] });
  const said = item['type'] === 'message' && item['role'] === 'assistant';
  return said
    ? textPart(
        listOf(item['content'])
          .flatMap((block) => stringOf(block['text']) ?? [])
          .join(''),
      )
    : null;
}
