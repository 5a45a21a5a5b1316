import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const keyDigest = (key: string): Buffer => hash('sha256', key, 'buffer');

/**
 * Whether a request has the key of `digest` where one of the dialects puts its API key. Takes equally long for every
 * wrong one.
 */
export function presentsKey(headers: IncomingHttpHeaders, digest: Buffer): boolean {
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1];
  return [bearer, headers['x-api-key']].some(
    (given) => typeof given === 'string' && timingSafeEqual(keyDigest(given.trim()), digest),
  );
}
