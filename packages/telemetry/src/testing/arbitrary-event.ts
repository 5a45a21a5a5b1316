import fc from 'fast-check';
import type { Json, MessagesDelta, RecordEvent, Span } from '../types.js';

/** Arbitrary events of every type, optional fields present and absent, and ways to spoil one. */
const natural = fc.nat();
const time = fc.double({ noNaN: true, noDefaultInfinity: true }).map((t) => (Object.is(t, -0) ? 0 : t));
const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const strings = fc.dictionary(text, text, { maxKeys: 3 });
const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
const nullable = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null });
const list = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(of, { maxLength: 3 });

/** `required` always, `optional` sometimes. */
function object<R extends object, O extends object = object>(
  required: { [K in keyof R]: fc.Arbitrary<R[K]> },
  optional: { [K in keyof O]: fc.Arbitrary<O[K]> } = {} as { [K in keyof O]: fc.Arbitrary<O[K]> },
): fc.Arbitrary<R & Partial<O>> {
  return fc.record(
    { ...required, ...optional },
    { requiredKeys: Object.keys(required) as never[], noNullPrototype: true },
  ) as unknown as fc.Arbitrary<R & Partial<O>>;
}

const span: fc.Arbitrary<Span> = object({ offset: natural, count: natural });
const messages: fc.Arbitrary<MessagesDelta> = object({
  parent: nullable(natural),
  kept: natural,
  appended: list(json),
});
const is = <T extends string>(...names: T[]): fc.Arbitrary<T> => fc.constantFrom(...names);

type Event<T extends RecordEvent['type']> = Extract<RecordEvent, { type: T }>;

const byType: { [T in RecordEvent['type']]: fc.Arbitrary<Event<T>> } = {
  'rollout.start': object(
    {
      type: is('rollout.start'),
      version: fc.constant(1 as const),
      rolloutId: text,
      time,
      template: text,
      labels: strings,
    },
    { minor: natural },
  ),
  engine: object({ type: is('engine'), time, facts: json }),
  'call.start': object(
    {
      type: is('call.start'),
      call: natural,
      time,
      dialect: text,
      headers: strings,
      bodyHash: text,
      messages,
      tools: object({ hash: text }, { specs: json }),
      requested: json,
      unknown: list(text),
    },
    {
      identity: object(
        {},
        {
          session: text,
          agent: text,
          parentAgent: text,
          requestClass: is('main', 'subagent', 'compaction', 'side'),
          depth: natural,
          compacted: fc.boolean(),
        },
      ),
      raw: messages,
    },
  ),
  'call.prompt': object({
    type: is('call.prompt'),
    call: natural,
    prompt: object({ parent: nullable(natural), kept: natural, appended: span, length: natural, hash: text }),
    graft: object(
      { reason: is('root', 'reply', 'same-prompt', 'prefix', 'rewritten'), keptMessages: natural },
      { rewrite: object({ message: natural, call: nullable(natural) }) },
    ),
  }),
  'call.sampled': object(
    {
      type: is('call.sampled'),
      call: natural,
      time,
      tokens: span,
      logprobs: span,
      finish: is('stop', 'length', 'abort', 'error'),
      policy: object({ id: text, version: fc.integer() }),
      sampling: json,
      reply: object({ parts: list(json) }, { malformed: text }),
    },
    { ids: is('engine', 'surrogate') },
  ),
  'call.end': object(
    {
      type: is('call.end'),
      call: natural,
      time,
      firstByte: nullable(time),
      delivery: is('complete', 'partial', 'none'),
      cause: is('done', 'client', 'gateway', 'engine'),
      status: fc.integer(),
    },
    { sent: object({ bytes: natural, events: natural }) },
  ),
  workspace: object({
    type: is('workspace'),
    time,
    call: nullable(natural),
    changes: list(
      object(
        {
          path: text,
          kind: is('create', 'modify', 'delete', 'opaque', 'symlink', 'dir', 'other', 'undone'),
          size: natural,
        },
        { sha256: text },
      ),
    ),
  }),
  'tool.exec': object(
    {
      type: is('tool.exec'),
      source: is('strace', 'transcript'),
      command: text,
      start: time,
      end: nullable(time),
      code: nullable(fc.integer()),
    },
    { pid: natural, parentPid: natural, signal: nullable(text) },
  ),
  transcript: object({
    type: is('transcript'),
    time,
    agents: list(
      object({
        agent: text,
        parentAgent: nullable(text),
        spawnedBy: nullable(text),
        file: text,
        entries: list(
          object(
            {
              id: text,
              parent: nullable(text),
              time: nullable(time),
              kind: is('user', 'assistant', 'tool', 'compaction', 'other'),
            },
            { text, parts: list(json) },
          ),
        ),
      }),
    ),
  }),
  'process.exit': object({
    type: is('process.exit'),
    time,
    code: nullable(fc.integer()),
    signal: nullable(text),
    timedOut: fc.boolean(),
  }),
  verifier: object(
    { type: is('verifier'), time, reward: nullable(time), scores: fc.dictionary(text, time, { maxKeys: 3 }) },
    { error: object({ code: text, message: text }) },
  ),
  'rollout.end': object({ type: is('rollout.end'), time, status: is('completed', 'failed', 'cancelled') }),
};

export const arbitraryEvent: fc.Arbitrary<RecordEvent> = fc.oneof(
  ...(Object.values(byType) as fc.Arbitrary<RecordEvent>[]),
);

/** One to three fields, at any depth, set to something else, removed, added or renamed. Still JSON. */
export const mutatedEvent: fc.Arbitrary<Json> = fc
  .tuple(
    arbitraryEvent,
    fc.array(fc.tuple(fc.nat(), fc.nat(5), wrongValue()), { minLength: 1, maxLength: 3 }),
  )
  .map(([event, changes]) => {
    const copy = structuredClone(event) as unknown as Json;
    for (const [where, how, value] of changes) spoil(copy, where, how, structuredClone(value));
    return copy;
  });

function wrongValue(): fc.Arbitrary<Json> {
  const special: Json[] = [null, true, '', 0, -1, 0.5, 1e300, 2 ** 53, [], {}, [null], { type: 'engine' }];
  return fc.oneof(fc.constantFrom(...special), json);
}

function spoil(event: Json, where: number, how: number, value: Json): void {
  const places: { owner: { [key: string]: Json }; key: string }[] = [];
  const collect = (owner: Json): void => {
    if (typeof owner !== 'object' || owner === null) return;
    for (const key of Object.keys(owner)) {
      places.push({ owner: owner as { [key: string]: Json }, key });
      collect((owner as { [key: string]: Json })[key]!);
    }
  };
  collect(event);
  if (places.length === 0) return;
  const { owner, key } = places[where % places.length]!;
  if (how === 0 && !Array.isArray(owner)) delete owner[key];
  else if (how === 1 && !Array.isArray(owner)) owner[`${key}x`] = value;
  else owner[key] = value;
}
