import { fromNative } from './errors.js';

/** Runs a call of the addon; what it throws gets a JavaScript stack. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw fromNative(error);
  }
}

/** The length of an array that the addon has not checked yet; 0 when it is none. */
export function lengthOf<K extends string>(
  input: Partial<Record<K, unknown>> | null | undefined,
  name: K,
): number {
  const value = input?.[name];
  return ArrayBuffer.isView(value) ? ((value as unknown as { length?: number }).length ?? 0) : 0;
}
