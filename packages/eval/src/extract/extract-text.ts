import { closeSync, openSync, readSync, lstatSync } from 'node:fs';
import { extname } from 'node:path';

export interface Extracted {
  /** Null for what holds no text, with the reason in `why`. */
  text: string | null;
  why: string | null;
}

/** Larger files are not opened by a parser that holds them whole. */
const PARSE_LIMIT = 64 * 1024 * 1024;
/** Bytes read of a text file; a judge is never shown as many. */
const TEXT_LIMIT = 2 * 1024 * 1024;

type Parser = (file: string) => Promise<string>;
// Loaded when a file asks for it: the parsers' libraries take longer to load than most commands run.
const workbook: Parser = async (file) => (await import('./workbook.js')).workbookText(file);
const database: Parser = async (file) => (await import('./sqlite.js')).sqliteText(file);
const PARSERS: Readonly<Record<string, Parser>> = {
  '.xlsx': workbook,
  '.xlsm': workbook,
  '.xls': workbook,
  '.ods': workbook,
  '.docx': async (file) => (await import('./word.js')).wordText(file),
  '.pdf': async (file) => (await import('./pdf.js')).pdfText(file),
  '.db': database,
  '.sqlite': database,
  '.sqlite3': database,
  '.ipynb': async (file) => (await import('./notebook.js')).notebookText(file),
};

/**
 * The text of a file: of office documents, PDF, databases and notebooks by their parsers, of anything else as UTF-8. Never throws for
 * what a file holds: one that its parser cannot read is text without a text, and says why.
 */
export async function extractText(file: string): Promise<Extracted> {
  const stat = lstatSync(file);
  if (!stat.isFile()) return { text: null, why: 'not a regular file' };
  const parser = PARSERS[extname(file).toLowerCase()];
  if (parser) {
    if (stat.size > PARSE_LIMIT) return { text: null, why: `${stat.size} bytes, too large to read` };
    try {
      return { text: await parser(file), why: null };
    } catch (error) {
      return { text: null, why: `cannot be read: ${(error as Error).message.split('\n')[0]}` };
    }
  }
  const bytes = head(file, TEXT_LIMIT);
  if (bytes.subarray(0, 8192).includes(0)) return { text: null, why: 'binary' };
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  return {
    text: stat.size > TEXT_LIMIT ? `${text}\n[…${stat.size - TEXT_LIMIT} bytes cut]` : text,
    why: null,
  };
}

function head(file: string, limit: number): Buffer {
  const handle = openSync(file, 'r');
  try {
    const buffer = Buffer.alloc(limit);
    return buffer.subarray(0, readSync(handle, buffer, 0, limit, 0));
  } finally {
    closeSync(handle);
  }
}
