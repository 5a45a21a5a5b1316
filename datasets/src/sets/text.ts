/** Small writers that all families share. Files end with a newline, as an editor leaves them. */

/** A table; a cell with a comma, a quote or a line break is quoted. */
export const csv = (header: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [header, ...rows]
    .map((row) =>
      row
        .map((cell) =>
          /[",\n]/.test(String(cell)) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell),
        )
        .join(','),
    )
    .join('\n') + '\n';

export const json = (value: unknown): string => JSON.stringify(value, null, 2) + '\n';

export const lines = (...rows: readonly string[]): string => rows.join('\n') + '\n';

/** Rounded to cents, halves away from zero, without -0. */
export const money = (value: number): number =>
  (Math.sign(value) * Math.round(Math.abs(value) * 100 + 1e-7)) / 100 + 0;

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** `2026-03-09` + days. */
export const addDays = (date: string, days: number): string =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
