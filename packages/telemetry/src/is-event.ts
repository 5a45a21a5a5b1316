import { isJson, isJsonArray } from './json-value.js';
import { RECORD_VERSION, type RecordEvent } from './types.js';

/**
 * The schemas of schema.ts by hand: one pass, no allocation, yes or no. A record is validated line by line, and zod takes
 * several times as long as parsing the line; is-event.test.ts holds the two equal on arbitrary and mutated events.
 *
 * Every object is strict. Its check counts the keys it vouches for and compares with the keys there are, so that an
 * unknown field is found without a look-up per key.
 */
type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
/** A whole number from 0 that float64 holds exactly. */
export const isNatural = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
const isInteger = (value: unknown): boolean => Number.isSafeInteger(value);
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isString = (value: unknown): boolean => typeof value === 'string';
const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isNaturalOrNull = (value: unknown): boolean => value === null || isNatural(value);
const isIntegerOrNull = (value: unknown): boolean => value === null || isInteger(value);
const isNumberOrNull = (value: unknown): boolean => value === null || isNumber(value);
const isStringOrNull = (value: unknown): boolean => value === null || isString(value);
const isValue = (value: unknown): boolean => isJson(value);
const isValues = (value: unknown): boolean => Array.isArray(value) && isJsonArray(value);
const oneOf = (...names: string[]): ((value: unknown) => boolean) => {
  const known: readonly unknown[] = names; // a handful: faster than a set
  return (value) => known.includes(value);
};

/** Exactly `required` fields, which the caller has checked, and of the optional ones those it was told of. */
function hasKeys(fields: Fields, expected: number): boolean {
  let count = 0;
  for (const _ in fields) count++;
  return count === expected;
}

/**
 * 0 when the field is absent, 1 when it is there and right, NaN (no count equals it) when it is wrong. One that is there
 * and undefined is not counted here, but among the keys.
 */
function optional(value: unknown, check: (value: unknown) => boolean): number {
  if (value === undefined) return 0;
  return check(value) ? 1 : Number.NaN;
}

function isList(value: unknown, check: (item: unknown) => boolean): boolean {
  if (!Array.isArray(value)) return false;
  for (let i = 0; i < value.length; i++) {
    if (!check(value[i])) return false;
  }
  return true;
}

function isRecordOf(value: unknown, check: (item: unknown) => boolean): boolean {
  if (!isFields(value)) return false;
  for (const key in value) {
    if (!check(value[key])) return false;
  }
  return true;
}

const isStrings = (value: unknown): boolean => isRecordOf(value, isString);
const isSpan = (value: unknown): boolean =>
  isFields(value) && isNatural(value['offset']) && isNatural(value['count']) && hasKeys(value, 2);
const isMessages = (value: unknown): boolean =>
  isFields(value) &&
  isNaturalOrNull(value['parent']) &&
  isNatural(value['kept']) &&
  isValues(value['appended']) &&
  hasKeys(value, 3);

const isRequestClass = oneOf('main', 'subagent', 'compaction', 'side');
const isIdentity = (value: unknown): boolean =>
  isFields(value) &&
  hasKeys(
    value,
    optional(value['session'], isString) +
      optional(value['agent'], isString) +
      optional(value['parentAgent'], isString) +
      optional(value['requestClass'], isRequestClass) +
      optional(value['depth'], isNatural) +
      optional(value['compacted'], isBoolean),
  );
const isTools = (value: unknown): boolean =>
  isFields(value) && isString(value['hash']) && hasKeys(value, 1 + optional(value['specs'], isValue));

const isPromptDelta = (value: unknown): boolean =>
  isFields(value) &&
  isNaturalOrNull(value['parent']) &&
  isNatural(value['kept']) &&
  isSpan(value['appended']) &&
  isNatural(value['length']) &&
  isString(value['hash']) &&
  hasKeys(value, 5);
const isReason = oneOf('root', 'reply', 'same-prompt', 'prefix', 'rewritten');
const isRewrite = (value: unknown): boolean =>
  isFields(value) && isNatural(value['message']) && isNaturalOrNull(value['call']) && hasKeys(value, 2);
const isGraft = (value: unknown): boolean =>
  isFields(value) &&
  isReason(value['reason']) &&
  isNatural(value['keptMessages']) &&
  hasKeys(value, 2 + optional(value['rewrite'], isRewrite));

const isFinish = oneOf('stop', 'length', 'abort', 'error');
const isIds = oneOf('engine', 'surrogate');
const isPolicy = (value: unknown): boolean =>
  isFields(value) && isString(value['id']) && isInteger(value['version']) && hasKeys(value, 2);
const isReply = (value: unknown): boolean =>
  isFields(value) && isValues(value['parts']) && hasKeys(value, 1 + optional(value['malformed'], isString));

const isDelivery = oneOf('complete', 'partial', 'none');
const isCause = oneOf('done', 'client', 'gateway', 'engine');
const isSent = (value: unknown): boolean =>
  isFields(value) && isNatural(value['bytes']) && isNatural(value['events']) && hasKeys(value, 2);

const isChangeKind = oneOf('create', 'modify', 'delete', 'opaque', 'symlink', 'dir', 'other', 'undone');
const isChange = (value: unknown): boolean =>
  isFields(value) &&
  isString(value['path']) &&
  isChangeKind(value['kind']) &&
  isNatural(value['size']) &&
  hasKeys(value, 3 + optional(value['sha256'], isString));

const isSource = oneOf('strace', 'transcript');
const isEntryKind = oneOf('user', 'assistant', 'tool', 'compaction', 'other');
const isEntry = (value: unknown): boolean =>
  isFields(value) &&
  isString(value['id']) &&
  isStringOrNull(value['parent']) &&
  isNumberOrNull(value['time']) &&
  isEntryKind(value['kind']) &&
  hasKeys(value, 4 + optional(value['text'], isString) + optional(value['parts'], isValues));
const isAgent = (value: unknown): boolean =>
  isFields(value) &&
  isString(value['agent']) &&
  isStringOrNull(value['parentAgent']) &&
  isStringOrNull(value['spawnedBy']) &&
  isString(value['file']) &&
  isList(value['entries'], isEntry) &&
  hasKeys(value, 5);

const isError = (value: unknown): boolean =>
  isFields(value) && isString(value['code']) && isString(value['message']) && hasKeys(value, 2);
const isStatus = oneOf('completed', 'failed', 'cancelled');

/** True exactly for what `eventSchema` accepts. */
export function isEvent(event: unknown): event is RecordEvent {
  if (!isFields(event)) return false;
  switch (event['type']) {
    case 'call.start':
      return (
        isNatural(event['call']) &&
        isNumber(event['time']) &&
        isString(event['dialect']) &&
        isStrings(event['headers']) &&
        isString(event['bodyHash']) &&
        isMessages(event['messages']) &&
        isTools(event['tools']) &&
        isValue(event['requested']) &&
        isList(event['unknown'], isString) &&
        hasKeys(event, 10 + optional(event['identity'], isIdentity) + optional(event['raw'], isMessages))
      );
    case 'call.prompt':
      return (
        isNatural(event['call']) &&
        isPromptDelta(event['prompt']) &&
        isGraft(event['graft']) &&
        hasKeys(event, 4)
      );
    case 'call.sampled':
      return (
        isNatural(event['call']) &&
        isNumber(event['time']) &&
        isSpan(event['tokens']) &&
        isSpan(event['logprobs']) &&
        isFinish(event['finish']) &&
        isPolicy(event['policy']) &&
        isValue(event['sampling']) &&
        isReply(event['reply']) &&
        hasKeys(event, 9 + optional(event['ids'], isIds))
      );
    case 'call.end':
      return (
        isNatural(event['call']) &&
        isNumber(event['time']) &&
        isNumberOrNull(event['firstByte']) &&
        isDelivery(event['delivery']) &&
        isCause(event['cause']) &&
        isInteger(event['status']) &&
        hasKeys(event, 7 + optional(event['sent'], isSent))
      );
    case 'workspace':
      return (
        isNumber(event['time']) &&
        isNaturalOrNull(event['call']) &&
        isList(event['changes'], isChange) &&
        hasKeys(event, 4)
      );
    case 'tool.exec':
      return (
        isSource(event['source']) &&
        isString(event['command']) &&
        isNumber(event['start']) &&
        isNumberOrNull(event['end']) &&
        isIntegerOrNull(event['code']) &&
        hasKeys(
          event,
          6 +
            optional(event['pid'], isNatural) +
            optional(event['parentPid'], isNatural) +
            optional(event['signal'], isStringOrNull),
        )
      );
    case 'transcript':
      return isNumber(event['time']) && isList(event['agents'], isAgent) && hasKeys(event, 3);
    case 'engine':
      return isNumber(event['time']) && isValue(event['facts']) && hasKeys(event, 3);
    case 'rollout.start':
      return (
        event['version'] === RECORD_VERSION &&
        isString(event['rolloutId']) &&
        isNumber(event['time']) &&
        isString(event['template']) &&
        isStrings(event['labels']) &&
        hasKeys(event, 6 + optional(event['minor'], isNatural))
      );
    case 'process.exit':
      return (
        isNumber(event['time']) &&
        isIntegerOrNull(event['code']) &&
        isStringOrNull(event['signal']) &&
        isBoolean(event['timedOut']) &&
        hasKeys(event, 5)
      );
    case 'verifier':
      return (
        isNumber(event['time']) &&
        isNumberOrNull(event['reward']) &&
        isRecordOf(event['scores'], isNumber) &&
        hasKeys(event, 4 + optional(event['error'], isError))
      );
    case 'rollout.end':
      return isNumber(event['time']) && isStatus(event['status']) && hasKeys(event, 3);
    default:
      return false;
  }
}
