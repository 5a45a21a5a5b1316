import mammoth from 'mammoth';

/** Paragraphs of a .docx, tables cell by cell. */
export async function wordText(file: string): Promise<string> {
  const { value } = await mammoth.extractRawText({ path: file });
  return value.replace(/\n{3,}/g, '\n\n').trim();
}
