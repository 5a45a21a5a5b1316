const MARK = Symbol.for('treeward.error');

export type NativeErrorCode =
  | 'NATIVE_E_LOAD'
  | 'NATIVE_E_BACKEND'
  | 'NATIVE_E_TYPE'
  | 'NATIVE_E_LENGTH'
  | 'NATIVE_E_OPTION'
  | 'NATIVE_E_VALUE'
  | 'NATIVE_E_CYCLE'
  | 'NATIVE_E_MEMORY'
  | 'NATIVE_E_DEVICE'
  | 'NATIVE_E_INTERNAL';

/**
 * Same shape and marker as `TreewardError` of @treeward/base, which this package may not depend on: it crosses process
 * boundaries like any other Treeward error and keeps its code.
 */
export class NativeError extends Error {
  readonly code: NativeErrorCode;
  readonly hints: readonly string[];
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    code: NativeErrorCode,
    message: string,
    options: { hints?: readonly string[]; data?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NativeError';
    this.code = code;
    this.hints = options.hints ?? [];
    this.data = options.data ?? {};
    Object.defineProperty(this, MARK, { value: true });
  }
}

/** An error of the addon, thrown again with a JavaScript stack. */
export function fromNative(error: unknown): NativeError {
  if (error instanceof NativeError) return error;
  const { code, message } = error as { code?: string; message?: string };
  const known = typeof code === 'string' && code.startsWith('NATIVE_E_');
  return new NativeError(known ? (code as NativeErrorCode) : 'NATIVE_E_INTERNAL', message ?? String(error), {
    cause: error,
  });
}
