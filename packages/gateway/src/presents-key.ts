import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Whether a request has `key` where one of the dialects puts its API key. Takes equally long for every wrong one. */
export function presentsKey(headers: IncomingHttpHeaders, key: string): boolean {
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1];
  return [bearer, headers['x-api-key']].some(
    (given) => typeof given === 'string' && timingSafeEqual(digest(given.trim()), digest(key)),
  );
}
