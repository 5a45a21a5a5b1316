/**
 * A failure of the bootstrap that the user can do something about.
 *
 * `code` is stable (`BOOT_E_*`), `hints` are the ways out, one sentence each, and `log` is the file
 * that holds the whole output of the command that failed.
 */
export class BootError extends Error {
  constructor(code, message, { hints = [], log, cause } = {}) {
    super(message, { cause });
    this.name = 'BootError';
    this.code = code;
    this.hints = hints;
    this.log = log;
  }
}

/** The lines printed for an error: code and message, then each hint, then where the log lies. */
export function describeError(error) {
  if (!(error instanceof BootError)) return error?.stack ?? String(error);
  const lines = [`${error.code}: ${error.message}`];
  for (const hint of error.hints) lines.push(`  - ${hint}`);
  if (error.log !== undefined) lines.push(`  whole output: ${error.log}`);
  return lines.join('\n');
}
