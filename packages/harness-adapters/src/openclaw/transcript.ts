import type { TranscriptAgent } from '@treeward/telemetry';
import { jsonLines, jsonObject, listOf, loose, stringOf, textOf, type Loose } from '../transcripts/lines.js';
import { treeJsonlEntries } from '../transcripts/tree-jsonl.js';

/** Session files, one per agent; `sessions.json` says which agent started which, a spawn's result by which call. */
export function parseOpenclawTranscript(files: ReadonlyMap<string, Uint8Array>): TranscriptAgent[] {
  const sessions = jsonObject(files.get('sessions.json'));
  const keys = new Map<string, string>();
  for (const [key, session] of Object.entries(sessions)) {
    const id = stringOf(loose(session)['sessionId']);
    if (id !== null) keys.set(id, key);
  }
  const parsed = [...files]
    .filter(([file]) => file.endsWith('.jsonl') && !file.endsWith('.trajectory.jsonl'))
    .map(([file, bytes]) => ({ file, lines: jsonLines(bytes) }));
  const spawns = new Map(parsed.flatMap(({ lines }) => lines.flatMap(spawnOf)));
  return parsed
    .map(({ file, lines }): TranscriptAgent => {
      const key = keys.get(stringOf(lines[0]?.['id']) ?? file.replace(/\.jsonl$/, '')) ?? '';
      const agent = agentOf(key);
      const parent = stringOf(loose(sessions[key])['spawnedBy']);
      return {
        agent,
        parentAgent: agent === '' ? null : agentOf(parent ?? ''),
        spawnedBy: spawns.get(key) ?? null,
        file,
        entries: treeJsonlEntries(lines),
      };
    })
    .sort((a, b) => Number(a.agent !== '') - Number(b.agent !== ''));
}

const agentOf = (key: string): string => /:subagent:([\w-]+)$/.exec(key)?.[1] ?? '';

/** `[session key of the child, id of the call that started it]` */
function spawnOf(line: Loose): [string, string][] {
  const message = loose(line['message']);
  if (message['role'] !== 'toolResult' || message['toolName'] !== 'sessions_spawn') return [];
  const key = stringOf(jsonObject(Buffer.from(textOf(listOf(message['content'])) ?? ''))['childSessionKey']);
  const call = stringOf(message['toolCallId']);
  return key !== null && call !== null ? [[key, call]] : [];
}
