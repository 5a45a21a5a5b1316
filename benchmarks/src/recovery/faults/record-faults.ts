import type { Random } from '@treeward/base';
import { hashTokens, type RecordEvent } from '@treeward/telemetry';
import type { MemoryRecord } from '../record/memory-record.js';
import { recordedPrompts, type RecordedPrompt } from '../record/recorded-prompts.js';

/** What can happen to a record after the fact, by name. `rate`: of its calls. */
export const RECORD_FAULTS = {
  /** A call's events stand elsewhere in the file. */
  reorder,
  /** Half of the struck calls leave no event, half lose one of theirs. */
  lose,
  duplicate,
  /** No identity, no headers. */
  'missing-headers': missingHeaders,
  'missing-logprobs': missingLogprobs,
  /** All times of a call by another clock. */
  'clock-skew': clockSkew,
  /** The gateway grew a prompt out of the wrong call's tokens, and the policy saw just that. */
  'wrong-graft': wrongGraft,
} as const satisfies Record<string, RecordFault>;

export interface Struck {
  events: RecordEvent[];
  /** Calls that the fault was done to. */
  calls: ReadonlySet<number>;
}

type RecordFault = (
  record: MemoryRecord,
  events: readonly RecordEvent[],
  rate: number,
  random: Random,
) => Struck;

type CallEvent = Extract<RecordEvent, { call: number }>;

const callOf = (event: RecordEvent): number | null =>
  event.type.startsWith('call.') ? (event as CallEvent).call : null;

function pickCalls(events: readonly RecordEvent[], rate: number, random: Random): Set<number> {
  const calls = [...new Set(events.flatMap((event) => callOf(event) ?? []))].sort((a, b) => a - b);
  return new Set(calls.filter(() => random.next() < rate));
}

function mapCalls(
  events: readonly RecordEvent[],
  calls: ReadonlySet<number>,
  change: (event: RecordEvent) => RecordEvent,
): Struck {
  return { events: events.map((event) => (calls.has(callOf(event) ?? -1) ? change(event) : event)), calls };
}

/** How many lines an event can be away from its place. */
const REACH = 40;

function reorder(_: MemoryRecord, events: readonly RecordEvent[], rate: number, random: Random): Struck {
  const calls = pickCalls(events, rate, random);
  const placed = events.map((event, index) => ({
    event,
    at: calls.has(callOf(event) ?? -1) ? index + (2 * random.next() - 1) * REACH : index,
  }));
  return { events: placed.sort((a, b) => a.at - b.at).map(({ event }) => event), calls };
}

function lose(_: MemoryRecord, events: readonly RecordEvent[], rate: number, random: Random): Struck {
  const calls = pickCalls(events, rate, random);
  const types = ['call.start', 'call.prompt', 'call.sampled', 'call.end'];
  const gone = new Map([...calls].map((call) => [call, random.next() < 0.5 ? null : random.pick(types)]));
  return {
    events: events.filter((event) => {
      const what = gone.get(callOf(event) ?? -1);
      return what === undefined || (what !== null && what !== event.type);
    }),
    calls,
  };
}

function duplicate(_: MemoryRecord, events: readonly RecordEvent[], rate: number, random: Random): Struck {
  const calls = pickCalls(events, rate, random);
  const out = [...events];
  for (const event of events) {
    if (calls.has(callOf(event) ?? -1)) out.splice(1 + random.below(out.length), 0, event);
  }
  return { events: out, calls };
}

function missingHeaders(
  _: MemoryRecord,
  events: readonly RecordEvent[],
  rate: number,
  random: Random,
): Struck {
  return mapCalls(events, pickCalls(events, rate, random), (event) => {
    if (event.type !== 'call.start') return event;
    const { identity: _gone, ...rest } = event;
    return { ...rest, headers: {} };
  });
}

function missingLogprobs(
  record: MemoryRecord,
  events: readonly RecordEvent[],
  rate: number,
  random: Random,
): Struck {
  return mapCalls(events, pickCalls(events, rate, random), (event) => {
    if (event.type !== 'call.sampled') return event;
    const { count } = event.logprobs;
    const logprobs =
      random.next() < 0.5
        ? { offset: 2 ** 40, count }
        : record.logprobs(new Float32Array(count).fill(Number.NaN));
    return { ...event, logprobs };
  });
}

/** Standard deviation of the skew in milliseconds. */
const SKEW = 1000;

function clockSkew(_: MemoryRecord, events: readonly RecordEvent[], rate: number, random: Random): Struck {
  const calls = pickCalls(events, rate, random);
  const skews = new Map([...calls].map((call) => [call, Math.round(SKEW * random.normal())]));
  return mapCalls(events, calls, (event) => {
    const skew = skews.get(callOf(event)!)!;
    if (event.type === 'call.end') {
      const firstByte = event.firstByte === null ? null : event.firstByte + skew;
      return { ...event, time: event.time + skew, firstByte };
    }
    return 'time' in event ? { ...event, time: event.time + skew } : event;
  });
}

/** Calls back among which the wrong one is looked for. */
const NEAR = 8;

function wrongGraft(
  record: MemoryRecord,
  events: readonly RecordEvent[],
  rate: number,
  random: Random,
): Struck {
  const struck = pickCalls(events, rate, random);
  const calls = new Set<number>();
  const prompts = new Map<number, RecordedPrompt>(
    recordedPrompts(record.input(events)).map((prompt) => [prompt.call, prompt]),
  );
  const out = events.map((event): RecordEvent => {
    if (event.type !== 'call.prompt' || !struck.has(event.call)) return event;
    const { parent, kept, appended } = event.prompt;
    const sources = [...prompts.values()].filter(
      ({ call, sampled }) =>
        sampled !== null && call !== parent && call < event.call && call >= event.call - NEAR,
    );
    const tail = record.read(appended);
    if (parent === null || kept === 0 || sources.length === 0 || !tail) return event;
    const source = random.pick(sources);
    const ids = Int32Array.from([...source.prompt, ...source.sampled!, ...tail]);
    calls.add(event.call);
    return {
      ...event,
      prompt: {
        parent: source.call,
        kept: ids.length - tail.length,
        appended,
        length: ids.length,
        hash: hashTokens(ids),
      },
      graft: { reason: 'reply', keptMessages: event.graft.keptMessages },
    };
  });
  return { events: growAgain(record, out, calls, prompts), calls };
}

/** Prompts that grew out of a wrong one repeat its mistake where they kept its end, and are as they were elsewhere. */
function growAgain(
  record: MemoryRecord,
  events: readonly RecordEvent[],
  wrong: ReadonlySet<number>,
  before: ReadonlyMap<number, RecordedPrompt>,
): RecordEvent[] {
  const now = new Map<number, Int32Array>();
  return events.map((event) => {
    if (event.type !== 'call.prompt') return event;
    const { parent, kept, appended } = event.prompt;
    const old = before.get(event.call);
    const tail = record.read(appended);
    if (!old || !tail) return event;
    const source = parent === null ? undefined : before.get(parent);
    const changed = parent === null ? undefined : now.get(parent);
    if (wrong.has(event.call)) {
      // The source may itself have changed since the mistake was drawn.
      const start = changed ?? source!.prompt;
      const ids = Int32Array.from([...start, ...source!.sampled!, ...tail]);
      now.set(event.call, ids);
      const prompt = {
        ...event.prompt,
        kept: ids.length - tail.length,
        length: ids.length,
        hash: hashTokens(ids),
      };
      return { ...event, prompt };
    }
    if (!changed || !source) return event;
    if (kept < source.prompt.length) {
      const prompt = { ...event.prompt, parent: null, kept: 0, appended: record.tokens(old.prompt) };
      return { ...event, prompt };
    }
    const answer = source.sampled?.subarray(0, kept - source.prompt.length) ?? [];
    const ids = Int32Array.from([...changed, ...answer, ...tail]);
    now.set(event.call, ids);
    const prompt = {
      ...event.prompt,
      kept: ids.length - tail.length,
      length: ids.length,
      hash: hashTokens(ids),
    };
    return { ...event, prompt };
  });
}
