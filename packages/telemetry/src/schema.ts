import * as z from 'zod';
import { RECORD_VERSION, type RecordEvent } from './types.js';

/**
 * The encoding of every event, beside the TypeScript union in types.ts; schema.test-d.ts holds the two equal.
 * Objects are loose on reading (a later minor may add fields, see `readRecord`) and strict on writing.
 */
const natural = z.number().int().nonnegative();
const json = z.json();
const strings = z.record(z.string(), z.string());

export const spanSchema = z.object({ offset: natural, count: natural });

const messagesDelta = z.object({ parent: natural.nullable(), kept: natural, appended: z.array(json) });
const promptDelta = z.object({
  parent: natural.nullable(),
  kept: natural,
  appended: spanSchema,
  length: natural,
  hash: z.string(),
});

export const eventSchemas = {
  'rollout.start': z.object({
    type: z.literal('rollout.start'),
    version: z.literal(RECORD_VERSION),
    rolloutId: z.string(),
    time: z.number(),
    template: z.string(),
    labels: strings,
  }),
  'call.start': z.object({
    type: z.literal('call.start'),
    call: natural,
    time: z.number(),
    dialect: z.string(),
    headers: strings,
    bodyHash: z.string(),
    messages: messagesDelta,
    tools: z.object({ hash: z.string(), specs: z.exactOptional(json) }),
    requested: json,
    unknown: z.array(z.string()),
  }),
  'call.prompt': z.object({
    type: z.literal('call.prompt'),
    call: natural,
    prompt: promptDelta,
    graft: z.object({
      reason: z.enum(['root', 'reply', 'same-prompt', 'prefix', 'rewritten']),
      keptMessages: natural,
    }),
  }),
  'call.sampled': z.object({
    type: z.literal('call.sampled'),
    call: natural,
    time: z.number(),
    tokens: spanSchema,
    logprobs: spanSchema,
    finish: z.enum(['stop', 'length', 'abort', 'error']),
    policy: z.object({ id: z.string(), version: z.number().int() }),
    sampling: json,
    reply: z.object({ parts: z.array(json), malformed: z.exactOptional(z.string()) }),
  }),
  'call.end': z.object({
    type: z.literal('call.end'),
    call: natural,
    time: z.number(),
    firstByte: z.number().nullable(),
    delivery: z.enum(['complete', 'partial', 'none']),
    cause: z.enum(['done', 'client', 'gateway', 'engine']),
    status: z.number().int(),
  }),
  'process.exit': z.object({
    type: z.literal('process.exit'),
    time: z.number(),
    code: z.number().int().nullable(),
    signal: z.string().nullable(),
    timedOut: z.boolean(),
  }),
  verifier: z.object({
    type: z.literal('verifier'),
    time: z.number(),
    reward: z.number().nullable(),
    scores: z.record(z.string(), z.number()),
    error: z.exactOptional(z.object({ code: z.string(), message: z.string() })),
  }),
  'rollout.end': z.object({
    type: z.literal('rollout.end'),
    time: z.number(),
    status: z.enum(['completed', 'failed', 'cancelled']),
  }),
} as const;

export type EventType = keyof typeof eventSchemas;

export const eventSchema = z.discriminatedUnion('type', [
  eventSchemas['rollout.start'],
  eventSchemas['call.start'],
  eventSchemas['call.prompt'],
  eventSchemas['call.sampled'],
  eventSchemas['call.end'],
  eventSchemas['process.exit'],
  eventSchemas.verifier,
  eventSchemas['rollout.end'],
]);

export type EncodedEvent = z.infer<typeof eventSchema>;

export function isEventType(type: unknown): type is RecordEvent['type'] {
  return typeof type === 'string' && Object.hasOwn(eventSchemas, type);
}
