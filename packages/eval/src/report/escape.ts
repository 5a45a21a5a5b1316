/** Text as content of an XML element or attribute. */
export const escapeXml = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.codePointAt(0)!};`).replace(/[^\P{Cc}\t\n\r]/gu, '\ufffd');
