import type { Json } from './types.js';

/** Deeper nesting than this is refused: what reads a record walks values recursively, and so does JSON.stringify. */
export const MAX_JSON_DEPTH = 1000;

/** True for what JSON can carry: no undefined, functions, bigints, NaN or infinities, and no bottomless nesting. */
export function isJson(value: unknown, depth = MAX_JSON_DEPTH): value is Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value);
    case 'object':
      if (value === null) return true;
      if (depth === 0) return false;
      if (Array.isArray(value)) return isJsonArray(value, depth - 1);
      for (const key in value) {
        if (!isJson((value as Record<string, unknown>)[key], depth - 1)) return false;
      }
      return true;
    default:
      return false;
  }
}

export function isJsonArray(values: readonly unknown[], depth = MAX_JSON_DEPTH): values is Json[] {
  for (let i = 0; i < values.length; i++) {
    if (!isJson(values[i], depth)) return false;
  }
  return true;
}
