import { describe, expect, expectTypeOf, it } from 'vitest';
import { eventSchema, eventSchemas, isEventType, type EncodedEvent } from './schema.js';
import type { RecordEvent } from './types.js';

describe('eventSchema', () => {
  it('is the same type as the union, both ways', () => {
    expectTypeOf<EncodedEvent>().toEqualTypeOf<RecordEvent>();
    expectTypeOf<keyof typeof eventSchemas>().toEqualTypeOf<RecordEvent['type']>();
    const forth = (event: EncodedEvent): RecordEvent => event;
    const back = (event: RecordEvent): EncodedEvent => event;
    const exit: RecordEvent = {
      type: 'process.exit',
      time: 1,
      code: null,
      signal: 'SIGKILL',
      timedOut: true,
    };
    expect(eventSchema.parse(forth(back(exit)))).toEqual(exit);
  });

  it('knows its own types only', () => {
    expect(isEventType('call.start')).toBe(true);
    expect(isEventType('toString')).toBe(false);
    expect(isEventType(3)).toBe(false);
  });

  it('refuses values that JSON cannot carry', () => {
    const sampled = {
      type: 'call.sampled',
      call: 0,
      time: 1,
      tokens: { offset: 0, count: 0 },
      logprobs: { offset: 0, count: 0 },
      finish: 'stop',
      policy: { id: 'p', version: 0 },
      sampling: { deep: [{ temperature: 1 }] },
      reply: { parts: [] },
    };
    expect(eventSchema.safeParse(sampled).success).toBe(true);
    for (const bad of [Number.NaN, undefined, () => 1, 1n]) {
      expect(eventSchema.safeParse({ ...sampled, sampling: { deep: [bad] } }).success).toBe(false);
    }
    expect(eventSchema.safeParse({ ...sampled, reply: { parts: [], malformed: undefined } }).success).toBe(
      false,
    );
  });
});
