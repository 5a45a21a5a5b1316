import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** Takes equally long for every wrong key of the right length, which is no secret: all keys have the same. */
function same(given: string, key: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(key)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Whether a request has `key` where one of the dialects puts its API key. */
export function presentsKey(headers: IncomingHttpHeaders, key: string): boolean {
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1];
  return [bearer, headers['x-api-key']].some((given) => typeof given === 'string' && same(given.trim(), key));
}
