import * as z from 'zod';
import { isJson } from './json-value.js';
import { RECORD_VERSION, type Json, type RecordEvent } from './types.js';

/**
 * The encoding of every event, beside the TypeScript union in types.ts; schema.test.ts holds the two equal. It explains
 * what is wrong with an event; is-event.ts says the same yes or no at a fraction of the cost (is-event.test.ts).
 * All objects are strict: the writer refuses what a schema does not name, the reader lays it aside (read-record.ts).
 */
const natural = z.number().int().nonnegative();
// By hand and not `z.json()`: messages are most of a record, and a recursive union costs far more than this walk.
const json = z.custom<Json>((value) => isJson(value), 'not a JSON value');

/** zod's record passes over a key named `__proto__`, which JSON.parse does make: its value is checked like any other. */
const recordOf = <T extends z.ZodString | z.ZodNumber>(item: T) =>
  z
    .custom<Record<string, unknown>>((value) => {
      const own =
        typeof value === 'object' && value !== null
          ? Object.getOwnPropertyDescriptor(value, '__proto__')
          : undefined;
      return own === undefined || item.safeParse(own.value).success;
    }, 'the value of __proto__ is of another type')
    .pipe(z.record(z.string(), item));
const strings = recordOf(z.string());

const spanSchema = z.strictObject({ offset: natural, count: natural });

const messagesDelta = z.strictObject({ parent: natural.nullable(), kept: natural, appended: z.array(json) });
const identity = z.strictObject({
  session: z.exactOptional(z.string()),
  agent: z.exactOptional(z.string()),
  parentAgent: z.exactOptional(z.string()),
  requestClass: z.exactOptional(z.enum(['main', 'subagent', 'compaction', 'side'])),
  depth: z.exactOptional(natural),
  compacted: z.exactOptional(z.boolean()),
});
const transcriptEntry = z.strictObject({
  id: z.string(),
  parent: z.string().nullable(),
  time: z.number().nullable(),
  kind: z.enum(['user', 'assistant', 'tool', 'compaction', 'other']),
  text: z.exactOptional(z.string()),
  parts: z.exactOptional(z.array(json)),
});
const promptDelta = z.strictObject({
  parent: natural.nullable(),
  kept: natural,
  appended: spanSchema,
  length: natural,
  hash: z.string(),
});

export const eventSchemas = {
  'rollout.start': z.strictObject({
    type: z.literal('rollout.start'),
    version: z.literal(RECORD_VERSION),
    minor: z.exactOptional(natural),
    rolloutId: z.string(),
    time: z.number(),
    template: z.string(),
    labels: strings,
  }),
  'call.start': z.strictObject({
    type: z.literal('call.start'),
    call: natural,
    time: z.number(),
    dialect: z.string(),
    headers: strings,
    bodyHash: z.string(),
    identity: z.exactOptional(identity),
    messages: messagesDelta,
    raw: z.exactOptional(messagesDelta),
    tools: z.strictObject({ hash: z.string(), specs: z.exactOptional(json) }),
    requested: json,
    unknown: z.array(z.string()),
  }),
  'call.prompt': z.strictObject({
    type: z.literal('call.prompt'),
    call: natural,
    prompt: promptDelta,
    graft: z.strictObject({
      reason: z.enum(['root', 'reply', 'same-prompt', 'prefix', 'rewritten']),
      keptMessages: natural,
      rewrite: z.exactOptional(z.strictObject({ message: natural, call: natural.nullable() })),
    }),
  }),
  'call.sampled': z.strictObject({
    type: z.literal('call.sampled'),
    call: natural,
    time: z.number(),
    tokens: spanSchema,
    logprobs: spanSchema,
    finish: z.enum(['stop', 'length', 'abort', 'error']),
    policy: z.strictObject({ id: z.string(), version: z.number().int() }),
    sampling: json,
    ids: z.exactOptional(z.enum(['engine', 'surrogate'])),
    reply: z.strictObject({ parts: z.array(json), malformed: z.exactOptional(z.string()) }),
  }),
  'call.end': z.strictObject({
    type: z.literal('call.end'),
    call: natural,
    time: z.number(),
    firstByte: z.number().nullable(),
    delivery: z.enum(['complete', 'partial', 'none']),
    cause: z.enum(['done', 'client', 'gateway', 'engine']),
    status: z.number().int(),
    sent: z.exactOptional(z.strictObject({ bytes: natural, events: natural })),
  }),
  engine: z.strictObject({ type: z.literal('engine'), time: z.number(), facts: json }),
  workspace: z.strictObject({
    type: z.literal('workspace'),
    time: z.number(),
    call: natural.nullable(),
    changes: z.array(
      z.strictObject({
        path: z.string(),
        kind: z.enum(['create', 'modify', 'delete', 'opaque', 'symlink', 'dir', 'other', 'undone']),
        size: natural,
        sha256: z.exactOptional(z.string()),
      }),
    ),
  }),
  'tool.exec': z.strictObject({
    type: z.literal('tool.exec'),
    source: z.enum(['strace', 'transcript']),
    pid: z.exactOptional(natural),
    parentPid: z.exactOptional(natural),
    command: z.string(),
    start: z.number(),
    end: z.number().nullable(),
    code: z.number().int().nullable(),
    signal: z.exactOptional(z.string().nullable()),
  }),
  transcript: z.strictObject({
    type: z.literal('transcript'),
    time: z.number(),
    agents: z.array(
      z.strictObject({
        agent: z.string(),
        parentAgent: z.string().nullable(),
        spawnedBy: z.string().nullable(),
        file: z.string(),
        entries: z.array(transcriptEntry),
      }),
    ),
  }),
  'process.exit': z.strictObject({
    type: z.literal('process.exit'),
    time: z.number(),
    code: z.number().int().nullable(),
    signal: z.string().nullable(),
    timedOut: z.boolean(),
  }),
  verifier: z.strictObject({
    type: z.literal('verifier'),
    time: z.number(),
    reward: z.number().nullable(),
    scores: recordOf(z.number()),
    error: z.exactOptional(z.strictObject({ code: z.string(), message: z.string() })),
  }),
  'rollout.end': z.strictObject({
    type: z.literal('rollout.end'),
    time: z.number(),
    status: z.enum(['completed', 'failed', 'cancelled']),
  }),
} as const;

export const eventSchema = z.discriminatedUnion('type', [
  eventSchemas['rollout.start'],
  eventSchemas.engine,
  eventSchemas['call.start'],
  eventSchemas['call.prompt'],
  eventSchemas['call.sampled'],
  eventSchemas['call.end'],
  eventSchemas.workspace,
  eventSchemas['tool.exec'],
  eventSchemas.transcript,
  eventSchemas['process.exit'],
  eventSchemas.verifier,
  eventSchemas['rollout.end'],
]);

export type EncodedEvent = z.infer<typeof eventSchema>;

export function isEventType(type: unknown): type is RecordEvent['type'] {
  return typeof type === 'string' && Object.hasOwn(eventSchemas, type);
}
