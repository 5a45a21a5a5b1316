import { readFileSync } from 'node:fs';
import { getDocument, VerbosityLevel } from 'pdfjs-dist/legacy/build/pdf.mjs';

/** Text of every page, in reading order as the file has it. Scanned pages have none. */
export async function pdfText(file: string): Promise<string> {
  const task = getDocument({
    data: new Uint8Array(readFileSync(file)),
    verbosity: VerbosityLevel.ERRORS,
    isEvalSupported: false,
    useSystemFonts: false,
    disableFontFace: true,
  });
  const document = await task.promise;
  try {
    const pages: string[] = [];
    for (let number = 1; number <= document.numPages; number++) {
      const page = await document.getPage(number);
      const { items } = await page.getTextContent();
      const text = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('');
      pages.push(`## page ${number}\n${text.trim()}`);
    }
    return pages.join('\n\n');
  } finally {
    await task.destroy();
  }
}
