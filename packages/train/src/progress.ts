/** Progress on stderr: one line that is rewritten in a terminal; rate-limited plain lines elsewhere. */
export class Progress {
  readonly #tty = Boolean(process.stderr.isTTY) && !process.env['CI'];
  readonly #quiet: boolean;
  #last = 0;

  constructor(options: { quiet?: boolean } = {}) {
    this.#quiet = options.quiet ?? false;
  }

  /** A passing state: may be skipped when nobody could read it in time. */
  update(text: string): void {
    if (this.#quiet) return;
    const now = Date.now();
    if (this.#tty) process.stderr.write(`\r\x1b[K${text.slice(0, (process.stderr.columns ?? 120) - 1)}`);
    else if (now - this.#last > 10_000) {
      this.#last = now;
      process.stderr.write(text + '\n');
    }
  }

  /** A line that stays. */
  line(text: string): void {
    if (this.#quiet) return;
    process.stderr.write(this.#tty ? `\r\x1b[K${text}\n` : `${text}\n`);
  }
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} min`;
}
