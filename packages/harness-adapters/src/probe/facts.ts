import { canonicalKey, type Message } from '@treeward/messages';
import type { ScriptedCall } from '../scripted/server.js';
import type { HarnessAdapter } from '../types.js';

/** How an installed CLI behaves in one run with one tool call. Names and counts only: never a text of the harness. */
export interface ProbeFacts {
  version: string;
  exitCode: number | null;
  /** Paths of the model calls, each once. */
  paths: string[];
  /** Roles of all calls, sorted: a title may be asked for beside the work. */
  calls: string[];
  /** Names of the request headers that tell who asks. */
  identityHeaders: string[];
  tools: string[];
  /** Top-level names of the first request's body. */
  bodyFields: string[];
  /** Body fields and block types that the dialect does not know. */
  unknown: string[];
  stream: boolean;
  /** Whether the last conversation begins with the one before it: as the dialect reads it, and canonical. */
  prefix: { raw: boolean; canonical: boolean };
  /** Whether the prompt reaches the model bare, once the canonicaliser has run. */
  barePrompt: boolean;
  /** Whether a repeated request says which attempt it is. */
  retryHeader: string | null;
  transcript: { agents: number; replies: number; results: number };
}

/** Headers of HTTP itself and of client libraries say nothing about the agent; ours come with the endpoint. */
const TRANSPORT =
  /^(?:accept|accept-.*|authorization|connection|content-.*|host|transfer-encoding|user-agent|x-api-key|x-stainless-.*|sec-fetch-.*|anthropic-.*|x-rollout-id|traceparent)$/;

export function probeFacts(
  adapter: HarnessAdapter,
  prompt: string,
  outcome: {
    version: string;
    runs: readonly { code: number | null }[];
    calls: readonly ScriptedCall[];
    agents: readonly { entries: readonly { kind: string }[] }[];
  },
): ProbeFacts {
  const work = outcome.calls.filter(({ identity }) => identity.requestClass !== 'side');
  const [first] = work;
  const [before, last] = work.slice(-2);
  const { canonicalise } = adapter;
  const keys = (call: ScriptedCall | undefined, form: (messages: readonly Message[]) => readonly Message[]) =>
    form(call?.request.messages ?? []).map(canonicalKey);
  const entries = outcome.agents.flatMap((agent) => agent.entries);
  const count = (kind: string): number => entries.filter((entry) => entry.kind === kind).length;
  return {
    version: outcome.version,
    exitCode: outcome.runs.at(-1)?.code ?? null,
    paths: [...new Set(outcome.calls.map(({ path }) => path))].sort(),
    calls: outcome.calls.map(({ identity }) => identity.requestClass ?? 'none').sort(),
    identityHeaders: Object.keys(first?.headers ?? {})
      .filter((name) => !TRANSPORT.test(name))
      .sort(),
    tools: (first?.request.tools ?? []).map(({ name }) => name).sort(),
    bodyFields: Object.keys(first ? (JSON.parse(first.body) as object) : {}).sort(),
    unknown: [...(first?.request.unknown ?? [])].sort(),
    stream: first?.request.stream ?? false,
    prefix: {
      raw: startsWith(keys(last, raw), keys(before, raw)),
      canonical: startsWith(keys(last, canonicalise), keys(before, canonicalise)),
    },
    barePrompt:
      JSON.stringify(canonicalise(first?.request.messages ?? [])) ===
      JSON.stringify([{ role: 'user', text: prompt }]),
    retryHeader: retryHeader(work),
    transcript: { agents: outcome.agents.length, replies: count('assistant'), results: count('tool') },
  };
}

const raw = (messages: readonly Message[]): readonly Message[] => messages;

const startsWith = (list: readonly string[], prefix: readonly string[]): boolean =>
  prefix.length > 0 && prefix.every((key, index) => list[index] === key);

/** `<name>: <first> → <second>` of the first failed call and the one that repeats it, if such a header is there. */
function retryHeader(work: readonly ScriptedCall[]): string | null {
  const name = Object.keys(work[0]?.headers ?? {}).find((header) => header.endsWith('retry-count'));
  return name === undefined
    ? null
    : `${name}: ${work[0]?.headers[name] ?? ''} → ${work[1]?.headers[name] ?? ''}`;
}
