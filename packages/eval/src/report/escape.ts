/** Text as content of an XML element or attribute. */
export const escapeXml = (text: string): string =>
  text
    .replace(/[&<>"']/g, (char) => `&#${char.codePointAt(0)!};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '\ufffd');
