import type {
  CallEnd,
  CallPrompt,
  CallSampled,
  CallStart,
  RecordEvent,
  RolloutEnd,
  RolloutStart,
  VerifierResult,
} from '@treeward/telemetry';
import { inArrivalOrder } from './call-times.js';
import type { TreeIssue } from './types.js';

/** All events of one model call, in whatever order and however often they stood in the record. */
export interface RecordedCall {
  call: number;
  start: CallStart | null;
  prompt: CallPrompt | null;
  sampled: CallSampled | null;
  end: CallEnd | null;
  /** Two events of one type disagree: nothing about this call can be trusted. */
  conflict: boolean;
  /** Complete request at the gateway. */
  startTime: number;
  /** First content byte written; the end of the connection if none was. */
  finishTime: number;
}

export interface CollectedRecord {
  rollout: RolloutStart | null;
  /** In the order in which they arrived. */
  calls: RecordedCall[];
  /** The same calls, those that a prompt or messages are stored against before those that are. */
  parentsFirst: RecordedCall[];
  verifier: VerifierResult | null;
  end: RolloutEnd | null;
  issues: TreeIssue[];
}

const SLOT = {
  'call.start': 'start',
  'call.prompt': 'prompt',
  'call.sampled': 'sampled',
  'call.end': 'end',
} as const;

/** Groups events by call. The outcome does not depend on their order, nor on events that were written twice. */
export function collectCalls(events: readonly RecordEvent[]): CollectedRecord {
  const calls = new Map<number, RecordedCall>();
  const issues: TreeIssue[] = [];
  const whole: { [T in RecordEvent['type']]?: RecordEvent } = {};

  for (const event of events) {
    if (event.type === 'workspace' || !('call' in event)) {
      // Of several, the last in time counts: a verifier may run again, a later process may close what another left open.
      const known = whole[event.type];
      if (!known || laterThan(event, known)) whole[event.type] = event;
      continue;
    }
    let entry = calls.get(event.call);
    if (!entry) calls.set(event.call, (entry = emptyCall(event.call)));
    const slot = SLOT[event.type];
    const known = entry[slot];
    if (known === null) {
      (entry as unknown as Record<string, RecordEvent>)[slot] = event;
    } else if (JSON.stringify(known) !== JSON.stringify(event)) {
      if (laterThan(event, known)) (entry as unknown as Record<string, RecordEvent>)[slot] = event;
      entry.conflict = true;
      issues.push({
        severity: 'fatal',
        code: 'TREE_CONFLICT',
        call: event.call,
        message: `call ${event.call} has two different ${event.type} events`,
      });
    }
  }

  const sorted = [...calls.values()].sort((a, b) => a.call - b.call);
  let lastStart = 0;
  for (const entry of sorted) {
    // Without its start a call is placed as late as what is known of it allows.
    entry.startTime = entry.start?.time ?? entry.sampled?.time ?? entry.end?.time ?? lastStart;
    entry.finishTime = entry.end?.firstByte ?? entry.end?.time ?? entry.sampled?.time ?? entry.startTime;
    lastStart = entry.startTime;
    if (!entry.start) {
      issues.push({
        severity: 'warn',
        code: 'TREE_NO_CALL_START',
        call: entry.call,
        message: `call ${entry.call} has no call.start: its messages and its start time are unknown`,
      });
    }
  }
  const { order, moved } = inArrivalOrder(sorted);
  for (const { call } of moved) {
    issues.push({
      severity: 'info',
      code: 'TREE_CLOCK',
      call,
      message: `the time of call ${call} does not fit its place among the arrivals: it is taken from its neighbours`,
    });
  }
  return {
    rollout: (whole['rollout.start'] as RolloutStart | undefined) ?? null,
    calls: order,
    parentsFirst: parentsFirst(order, calls, issues),
    verifier: (whole.verifier as VerifierResult | undefined) ?? null,
    end: (whole['rollout.end'] as RolloutEnd | undefined) ?? null,
    issues,
  };
}

function emptyCall(call: number): RecordedCall {
  return {
    call,
    start: null,
    prompt: null,
    sampled: null,
    end: null,
    conflict: false,
    startTime: 0,
    finishTime: 0,
  };
}

/** A total order that does not depend on the place in the file. */
function laterThan(a: RecordEvent, b: RecordEvent): boolean {
  const time = (event: RecordEvent): number => ('time' in event ? event.time : 0);
  return time(a) - time(b) > 0 || (time(a) === time(b) && JSON.stringify(a) > JSON.stringify(b));
}

/** Depth first over the recorded parents, without recursion: a chain may have 10⁵ calls. */
function parentsFirst(
  sorted: readonly RecordedCall[],
  calls: ReadonlyMap<number, RecordedCall>,
  issues: TreeIssue[],
): RecordedCall[] {
  const order: RecordedCall[] = [];
  const state = new Map<RecordedCall, 'open' | 'done'>();
  for (const top of sorted) {
    const stack = [top];
    while (stack.length > 0) {
      const entry = stack.at(-1)!;
      if (state.get(entry) === 'done') {
        stack.pop();
        continue;
      }
      const waiting: RecordedCall[] = [];
      for (const parent of [entry.prompt?.prompt.parent, entry.start?.messages.parent]) {
        const found = parent == null ? undefined : calls.get(parent);
        if (!found || state.get(found) === 'done') continue;
        if (state.get(found) === 'open' || found === entry) {
          issues.push({
            severity: 'fatal',
            code: 'TREE_PARENT_CYCLE',
            call: entry.call,
            message: `call ${entry.call} is recorded as growing out of itself (through call ${found.call})`,
          });
          continue;
        }
        waiting.push(found);
      }
      if (waiting.length > 0 && !state.has(entry)) {
        state.set(entry, 'open');
        stack.push(...waiting);
      } else {
        state.set(entry, 'done');
        order.push(entry);
        stack.pop();
      }
    }
  }
  return order;
}
