import type { ServerEvent } from './types.js';

/** One server-sent event as it goes over the wire. A string is a comment line, which every client ignores. */
export function encodeServerEvent(event: ServerEvent | string): string {
  if (typeof event === 'string') return `: ${event}\n\n`;
  return `${event.event === undefined ? '' : `event: ${event.event}\n`}data: ${event.data}\n\n`;
}

/** Text in deltas of at most `size` UTF-16 units; never splits a surrogate pair. Empty text gives no piece. */
export function textPieces(text: string, size = 512): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + size, text.length);
    const unit = text.charCodeAt(end - 1);
    if (end < text.length && end - 1 > start && unit >= 0xd800 && unit <= 0xdbff) end--;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}
