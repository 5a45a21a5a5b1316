import { adapters, type ToolVerb } from '@treeward/harness-adapters';

/** What harnesses and older graders call the same tools, lower case, without `_` and `-`. */
const NAMES: Readonly<Record<string, string>> = {
  ...same('read', 'read', 'readfile', 'view', 'viewfile', 'openfile'),
  ...same('write', 'write', 'writefile', 'createfile', 'savefile'),
  ...same('edit', 'edit', 'editfile', 'multiedit', 'strreplace', 'strreplaceeditor', 'replace'),
  ...same(
    'exec',
    'exec',
    'bash',
    'shell',
    'execcommand',
    'runcommand',
    'runterminalcmd',
    'localshell',
    'runshellcommand',
  ),
  ...same('web_search', 'websearch', 'searchweb'),
  ...same('web_fetch', 'webfetch', 'fetchurl', 'fetch'),
  ...same('sessions_spawn', 'sessionsspawn', 'task', 'agent', 'spawnagent', 'subagent'),
  ...same('apply_patch', 'applypatch'),
};

/** Argument names by canonical name, for each tool; the first that is there is taken. */
const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  read: { path: ['path', 'file_path', 'filePath', 'filename', 'file', 'files', 'paths', 'target_file'] },
  write: {
    path: ['path', 'file_path', 'filePath', 'filename', 'file', 'target_file'],
    content: ['content', 'contents', 'text', 'file_text'],
  },
  edit: {
    path: ['path', 'file_path', 'filePath', 'filename', 'file', 'target_file'],
    oldText: ['oldText', 'old_string', 'oldString', 'old_str', 'old'],
    newText: ['newText', 'new_string', 'newString', 'new_str', 'new'],
  },
  exec: { command: ['command', 'cmd', 'script'] },
};

function same(to: string, ...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, to]));
}

export interface CanonicalCall {
  name: string;
  arguments: Record<string, unknown>;
}

const plain = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^mcp__[a-z0-9]+__/, '')
    .replace(/[_-]/g, '');

/** A call in OpenClaw's names: by the harness's own table first, then by what such tools are called elsewhere. */
export function canonicalCall(harness: string, call: CanonicalCall): CanonicalCall {
  const verb = verbOf(harness, call.name) ?? NAMES[plain(call.name)];
  if (verb === undefined) return { name: call.name, arguments: call.arguments };
  const table = ARGUMENTS[verb];
  if (!table) return { name: verb, arguments: call.arguments };
  const args = { ...flat(call.arguments) };
  const renamed: Record<string, unknown> = {};
  for (const [canonical, aliases] of Object.entries(table)) {
    const found = aliases.find((alias) => args[alias] !== undefined);
    if (found === undefined) continue;
    renamed[canonical] = canonical === 'command' ? commandText(args[found]) : first(args[found]);
    for (const alias of aliases) delete args[alias];
  }
  return { name: verb, arguments: { ...renamed, ...args } };
}

function verbOf(harness: string, name: string): ToolVerb | undefined {
  const tools = adapters.find((adapter) => adapter.name === harness)?.tools;
  if (!tools) return undefined;
  // A harness without file tools does everything by its shell: that is `exec`, whatever the verb.
  const verbs = (['exec', 'read', 'write', 'edit'] as const).filter((verb) => tools[verb].tool === name);
  return verbs[0];
}

/** `{edits: [{oldText, newText}]}` of one edit has its texts on top. */
function flat(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const edits = args['edits'];
  if (!Array.isArray(edits) || edits.length !== 1 || typeof edits[0] !== 'object' || edits[0] === null)
    return { ...args };
  const { edits: _, ...rest } = args;
  return { ...rest, ...(edits[0] as Record<string, unknown>) };
}

const first = (value: unknown): unknown => {
  const item: unknown = Array.isArray(value) && value.length > 0 ? value[0] : value;
  return typeof item === 'object' && item !== null && 'path' in item ? item.path : item;
};

/** `["bash","-lc","ls"]` is `ls`. */
function commandText(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  const words = value.map(String);
  return /(^|\/)(ba|z|da)?sh$/.test(words[0] ?? '') && /^-l?c$/.test(words[1] ?? '') && words.length === 3
    ? words[2]
    : words.join(' ');
}
