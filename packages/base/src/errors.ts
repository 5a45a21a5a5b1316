const MARK = Symbol.for('treeward.error');

export interface TreewardErrorOptions {
  /** What the reader can do about it: one way out per entry, printed under the message. */
  hints?: readonly string[];
  /** Structured context (file, field, rolloutId, …). Must be JSON. */
  data?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

/** The form in which an error crosses a process or worker boundary (class identity does not). */
export interface PlainError {
  code: string;
  message: string;
  hints?: readonly string[];
  data?: Readonly<Record<string, unknown>>;
}

/**
 * The one base class. `code` is stable (`AREA_E_WHAT`), the message names the file or field, `hints` say what to do.
 * Use `TreewardError.isInstance` rather than `instanceof`: it survives duplicate copies of this package.
 */
export class TreewardError extends Error {
  readonly code: string;
  readonly hints: readonly string[];
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, options: TreewardErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'TreewardError';
    this.code = code;
    this.hints = options.hints ?? [];
    this.data = options.data ?? {};
    Object.defineProperty(this, MARK, { value: true });
  }

  static isInstance(value: unknown): value is TreewardError {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[MARK] === true;
  }
}

/** Any thrown value as something JSON can carry. Foreign errors get the code `E_UNEXPECTED`. */
export function toPlainError(error: unknown): PlainError {
  if (TreewardError.isInstance(error)) {
    return { code: error.code, message: error.message, hints: error.hints, data: error.data };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'E_UNEXPECTED', message };
}

export function fromPlainError(plain: PlainError): TreewardError {
  return new TreewardError(plain.code, plain.message, {
    ...(plain.hints ? { hints: plain.hints } : {}),
    ...(plain.data ? { data: plain.data } : {}),
  });
}
