import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEvent } from './is-event.js';
import { isJson, MAX_JSON_DEPTH } from './json-value.js';
import { eventSchema, eventSchemas } from './schema.js';
import { arbitraryEvent, mutatedEvent } from './testing/arbitrary-event.js';

describe('isEvent', { timeout: 60_000 }, () => {
  it('accepts every event of the union, as the schema does', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(arbitraryEvent, (event) => {
        seen.add(event.type);
        expect(eventSchema.safeParse(event).error).toBeUndefined();
        expect(isEvent(event)).toBe(true);
      }),
      { numRuns: 1000 },
    );
    expect([...seen].sort()).toEqual(Object.keys(eventSchemas).sort());
  });

  it('says of a spoilt event what the schema says', () => {
    let refused = 0;
    fc.assert(
      fc.property(mutatedEvent, (value) => {
        const accepted = eventSchema.safeParse(value).success;
        if (!accepted) refused++;
        expect(isEvent(value)).toBe(accepted);
      }),
      { numRuns: 10_000 },
    );
    expect(refused).toBeGreaterThan(1000); // the mutations do spoil
  });

  it('says so of any JSON value, and of what JSON cannot carry', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: false }), (value) => {
        expect(isEvent(value)).toBe(eventSchema.safeParse(value).success);
      }),
    );
    const engine = { type: 'engine', time: 1, facts: null };
    const odd = [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      undefined,
      () => 1,
      1n,
      [undefined],
      { a: Symbol('x') },
    ];
    for (const facts of odd) {
      expect(isEvent({ ...engine, facts })).toBe(false);
      expect(eventSchema.safeParse({ ...engine, facts }).success).toBe(false);
    }
    const end = { type: 'rollout.end', time: Number.NaN, status: 'failed' };
    expect([isEvent(end), eventSchema.safeParse(end).success]).toEqual([false, false]);
    const start = { type: 'rollout.start', version: 1, rolloutId: '', time: 1, template: '', labels: {} };
    const undefinedMinor = { ...start, minor: undefined };
    expect([isEvent(undefinedMinor), eventSchema.safeParse(undefinedMinor).success]).toEqual([false, false]);
  });

  it('looks at a value named __proto__ as at any other', () => {
    const event = (value: string): unknown =>
      JSON.parse(`{"type":"verifier","time":1,"reward":1,"scores":{"a":1,"__proto__":${value}}}`);
    for (const [value, right] of [
      ['1', true],
      ['null', false],
      ['{"b":1}', false],
    ] as const) {
      expect([isEvent(event(value)), eventSchema.safeParse(event(value)).success]).toEqual([right, right]);
    }
  });

  it('refuses bottomless nesting instead of overflowing the stack', () => {
    const nested = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
    expect(isJson(nested(MAX_JSON_DEPTH))).toBe(true);
    expect(isJson(nested(MAX_JSON_DEPTH + 1))).toBe(false);
    for (const depth of [MAX_JSON_DEPTH + 1, 200_000]) {
      const event = { type: 'engine', time: 1, facts: nested(depth) };
      expect([isEvent(event), eventSchema.safeParse(event).success]).toEqual([false, false]);
    }
  });
});
