import { fromNative } from './errors.js';
import { withTwins } from './load-binding.js';

/** Runs a call of the addon; what it throws gets a JavaScript stack. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw fromNative(error);
  }
}

/**
 * The asynchronous twin of an operator, which computes on a thread of libuv's pool and not on this one. Worth it from about a
 * millisecond of work on. Arguments are checked before it returns, but every error rejects the promise.
 *
 * Views are not copied: until the promise settles, a change of a Float32Array or Uint16Array may or may not be seen (Int32Arrays
 * are copied). Detaching or transferring their buffers is safe. Views of resizable buffers are refused: NATIVE_E_TYPE. Calls run
 * one after the other, each with up to `TREEWARD_NATIVE_THREADS` threads.
 */
export function promised<Arguments extends unknown[], Result>(
  operator: (...args: Arguments) => Result,
): (...args: Arguments) => Promise<Result> {
  return async (...args) => {
    try {
      return await withTwins(() => operator(...args));
    } catch (error) {
      throw fromNative(error);
    }
  };
}

/** The length of an array that the addon has not checked yet; 0 when it is none. */
export function lengthOf<K extends string>(
  input: Partial<Record<K, unknown>> | null | undefined,
  name: K,
): number {
  const value = input?.[name];
  return ArrayBuffer.isView(value) ? ((value as unknown as { length?: number }).length ?? 0) : 0;
}
