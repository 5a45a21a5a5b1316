import { readFileSync } from 'node:fs';
import initSqlJs from 'sql.js';

const ROWS = 500;

/** Each table's definition and its first 500 rows. The database is read from memory: nothing it holds is carried out. */
export async function sqliteText(file: string): Promise<string> {
  const bytes = readFileSync(file);
  if (bytes.subarray(0, 15).toString('latin1') !== 'SQLite format 3')
    throw new Error('not an SQLite database');
  const { Database } = await initSqlJs();
  const database = new Database(bytes);
  try {
    const [tables] = database.exec(
      "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    );
    return (tables?.values ?? [])
      .map(([name, sql]) => {
        const quoted = `"${String(name).replaceAll('"', '""')}"`;
        const count = Number(database.exec(`SELECT count(*) FROM ${quoted}`)[0]!.values[0]![0]);
        const [rows] = database.exec(`SELECT * FROM ${quoted} LIMIT ${ROWS}`);
        const body = (rows?.values ?? []).map((row) => row.map(cell).join(',')).join('\n');
        const more = count > ROWS ? `\n[…${count - ROWS} rows cut]` : '';
        return `## table ${name} (${count} rows)\n${sql}\n${rows ? `${rows.columns.join(',')}\n${body}` : ''}${more}`;
      })
      .join('\n\n');
  } finally {
    database.close();
  }
}

const cell = (value: unknown): string => {
  if (value === null) return '';
  if (value instanceof Uint8Array) return `<${value.length} bytes>`;
  const text = String(value as string | number);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
