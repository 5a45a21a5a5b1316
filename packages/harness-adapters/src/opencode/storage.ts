import type { Json, TranscriptAgent, TranscriptEntry } from '@treeward/telemetry';
import type { SandboxSession } from '@treeward/sandbox';
import { callPart, entryList, textPart } from '../transcripts/entries.js';
import { jsonObject, listOf, loose, stringOf, timeOf, type Loose } from '../transcripts/lines.js';

/** opencode keeps sessions in SQLite. Node 20 cannot read that by itself; Python, which every sandbox shows, can. */
const DUMP = `
import json, os, sqlite3, sys
path = sys.argv[1]
if os.path.exists(path):
    db = sqlite3.connect(path)
    rows = lambda sql: [dict(zip(("id", "session", "message", "time", "data"), r)) for r in db.execute(sql)]
    print(json.dumps({
        "sessions": [dict(zip(("id", "parent"), r)) for r in db.execute("select id, parent_id from session order by time_created, id")],
        "messages": rows("select id, session_id, null, time_created, data from message order by time_created, id"),
        "parts": rows("select id, session_id, message_id, time_created, data from part order by time_created, id"),
    }))
`;

const FILE = 'sessions.json';
const MAX_BYTES = 256 * 1024 ** 2;

export async function readOpencodeStorage(sandbox: SandboxSession): Promise<Map<string, Uint8Array>> {
  const database = `${sandbox.home}/.local/share/opencode/opencode.db`;
  const argv = ['/usr/bin/python3', '-c', DUMP, database];
  const { stdout } = await sandbox.run(argv, { maxOutput: MAX_BYTES });
  return new Map(stdout === '' ? [] : [[FILE, Buffer.from(stdout)]]);
}

/** A session per agent; a child's session names its parent's, and the `task` call that started it names the child's. */
export function parseOpencodeStorage(files: ReadonlyMap<string, Uint8Array>): TranscriptAgent[] {
  const storage = jsonObject(files.get(FILE));
  const messages = listOf(storage['messages']);
  const parts = listOf(storage['parts']).map((row) => ({ ...row, data: dataOf(row) }));
  const roots = new Set(
    listOf(storage['sessions']).flatMap((row) => (row['parent'] === null ? [row['id']] : [])),
  );
  const spawns = new Map(
    parts.flatMap(({ data }): [string, string][] => {
      const child = stringOf(loose(loose(data['state'])['metadata'])['sessionId']);
      const call = stringOf(data['callID']);
      return data['tool'] === 'task' && child !== null && call !== null ? [[child, call]] : [];
    }),
  );
  return listOf(storage['sessions']).flatMap((row): TranscriptAgent[] => {
    const id = stringOf(row['id']);
    if (id === null) return [];
    const parent = stringOf(row['parent']);
    const own = messages.filter((message) => message['session'] === id);
    return [
      {
        agent: parent === null ? '' : id,
        parentAgent: parent === null ? null : roots.has(parent) ? '' : parent,
        spawnedBy: spawns.get(id) ?? null,
        file: FILE,
        entries: entriesOf(own, parts),
      },
    ];
  });
}

const dataOf = (row: Loose): Loose => jsonObject(Buffer.from(stringOf(row['data']) ?? ''));

/** Messages in order; the result of a call is a part of the same message as the call, and an entry of its own here. */
function entriesOf(
  messages: readonly Loose[],
  parts: readonly (Loose & { data: Loose })[],
): TranscriptEntry[] {
  const list = entryList();
  for (const message of messages) {
    const id = stringOf(message['id']);
    if (id === null) continue;
    const data = dataOf(message);
    const own = parts.filter((part) => part['message'] === id).map((part) => part.data);
    const parent = list.entries.at(-1)?.id ?? null;
    const time = timeOf(message['time']);
    const text = own
      .flatMap((part) => (part['type'] === 'text' ? (stringOf(part['text']) ?? []) : []))
      .join('\n');
    if (data['role'] !== 'assistant') {
      const kind = own.some((part) => part['type'] === 'compaction') ? 'compaction' : 'user';
      list.add({ id, parent, time, kind, text });
    } else if (data['summary'] === true) {
      list.add({ id, parent, time, kind: 'compaction', text });
    } else {
      list.add({ id, parent, time, kind: 'assistant', parts: own.flatMap(replyPart) });
      for (const part of own.filter(({ type }) => type === 'tool')) {
        const state = loose(part['state']);
        list.add({
          id: `${id}/${stringOf(part['callID']) ?? ''}`,
          parent: id,
          time: timeOf(loose(state['time'])['end']),
          kind: 'tool',
          text: stringOf(state['output']) ?? stringOf(state['error']),
        });
      }
    }
  }
  return list.entries;
}

function replyPart(part: Loose): Json[] {
  if (part['type'] === 'text') return [textPart(stringOf(part['text']) ?? '')];
  if (part['type'] !== 'tool') return [];
  return [
    callPart(stringOf(part['callID']) ?? '', stringOf(part['tool']) ?? '', loose(part['state'])['input']),
  ];
}
