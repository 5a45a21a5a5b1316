import type { Json, TranscriptAgent, TranscriptEntry } from '@treeward/telemetry';
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

const SUBAGENT = /(?:^|\/)subagents\/agent-([^/]+)\.jsonl$/;

/** `<slug>/<session>.jsonl` is the main agent; `<slug>/<session>/subagents/agent-<id>.jsonl` + `.meta.json` each other. */
export function parseClaudeTranscript(files: ReadonlyMap<string, Uint8Array>): TranscriptAgent[] {
  const agents: TranscriptAgent[] = [];
  for (const [file, bytes] of files) {
    if (!file.endsWith('.jsonl')) continue;
    const agent = SUBAGENT.exec(file)?.[1] ?? '';
    const meta = agent === '' ? {} : jsonObject(files.get(file.replace(/\.jsonl$/, '.meta.json')));
    agents.push({
      agent,
      parentAgent: agent === '' ? null : (stringOf(meta['parentAgentId']) ?? ''),
      spawnedBy: stringOf(meta['toolUseId']),
      file,
      entries: entriesOf(jsonLines(bytes)),
    });
  }
  return agents.sort((a, b) => Number(a.agent !== '') - Number(b.agent !== ''));
}

/** One line per block of a reply; the lines of one reply share `message.id` and become one entry. */
function entriesOf(lines: readonly Loose[]): TranscriptEntry[] {
  const list = entryList();
  let replyId: string | null = null;
  for (const line of lines) {
    const id = stringOf(line['uuid']);
    if (id === null) continue; // bookkeeping of the harness
    const parent = stringOf(line['parentUuid']) ?? stringOf(line['logicalParentUuid']);
    const message = loose(line['message']);
    const kind = kindOf(line);
    const open = list.entries.at(-1);
    if (kind === 'assistant') {
      const parts = partsOf(message['content']);
      const same = replyId !== null && replyId === stringOf(message['id']) && open?.kind === 'assistant';
      replyId = stringOf(message['id']);
      if (same && open) {
        open.parts = [...(open.parts ?? []), ...parts];
        list.skip(id, open.id);
        continue;
      }
      list.add({ id, parent, time: timeOf(line['timestamp']), kind, parts });
    } else if (kind === null) {
      list.skip(id, parent);
    } else {
      const text = textOf(message['content']) ?? resultText(message['content']) ?? textOf(line['content']);
      list.add({ id, parent, time: timeOf(line['timestamp']), kind, text });
    }
  }
  return list.entries;
}

function kindOf(line: Loose): TranscriptEntry['kind'] | null {
  if (line['subtype'] === 'compact_boundary' || line['isCompactSummary'] === true) return 'compaction';
  if (line['type'] === 'assistant') return 'assistant';
  if (line['type'] === 'system') return 'other';
  if (line['type'] !== 'user') return null;
  const results = listOf(loose(line['message'])['content']).some((block) => block['type'] === 'tool_result');
  return results ? 'tool' : 'user';
}

function partsOf(content: unknown): Json[] {
  if (typeof content === 'string') return [textPart(content)];
  return listOf(content).flatMap((block): Json[] => {
    if (block['type'] === 'text') return [textPart(stringOf(block['text']) ?? '')];
    if (block['type'] !== 'tool_use') return [];
    return [callPart(stringOf(block['id']) ?? '', stringOf(block['name']) ?? '', block['input'])];
  });
}

const resultText = (content: unknown): string | null => {
  const texts = listOf(content).flatMap((block) => textOf(block['content']) ?? []);
  return texts.length > 0 ? texts.join('\n') : null;
};
