import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { TreewardError } from '@treeward/base';

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

// Newer Node versions have zstd; its types are not in the pinned @types/node.
const zstd = (zlib as unknown as Record<string, unknown>)['zstdDecompress'];

const DECODERS: Record<string, Decode> = {
  gzip: promisify(zlib.gunzip) as Decode,
  'x-gzip': promisify(zlib.gunzip) as Decode,
  deflate: promisify(zlib.inflate) as Decode,
  br: promisify(zlib.brotliDecompress) as Decode,
  ...(typeof zstd === 'function' && { zstd: promisify(zstd as typeof zlib.gunzip) as Decode }),
};

/** Thrown with the HTTP status that says what is wrong in `data.status`. */
const refuse = (status: number, code: string, message: string): TreewardError =>
  new TreewardError(code, message, { data: { status } });

/**
 * The whole body, decoded. The size limit holds before and after decoding.
 * @throws TreewardError GATEWAY_E_BODY_SIZE (413), GATEWAY_E_BODY_ENCODING (415, or 400 for damaged data),
 * GATEWAY_E_BODY_CUT (400) when the client left in the middle, GATEWAY_E_BODY_SLOW (408)
 */
export async function readBody(
  request: IncomingMessage,
  { maxBytes, timeoutMs }: { maxBytes: number; timeoutMs: number },
): Promise<Buffer> {
  const raw = await receive(request, maxBytes, timeoutMs);
  return decode(raw, request.headers['content-encoding'] ?? '', maxBytes);
}

const tooLong = (limit: number): TreewardError =>
  refuse(413, 'GATEWAY_E_BODY_SIZE', `the request body is over the limit of ${limit} bytes`);

function receive(request: IncomingMessage, limit: number, timeoutMs: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(() => {
      reject(refuse(408, 'GATEWAY_E_BODY_SLOW', `the body was not complete after ${timeoutMs} ms`));
    }, timeoutMs);
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      // What is too much is read to its end, or the client would never see the answer; it is not kept.
      if (size <= limit) chunks.push(chunk);
      else chunks.length = 0;
    });
    request.on('error', () => undefined); // 'close' follows
    request.on('end', () => {
      clearTimeout(timer);
      if (size > limit) reject(tooLong(limit));
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    request.on('close', () => {
      clearTimeout(timer);
      if (request.complete) return;
      reject(refuse(400, 'GATEWAY_E_BODY_CUT', 'the request ended before its body was complete'));
    });
  });
}

async function decode(raw: Buffer, contentEncoding: string, limit: number): Promise<Buffer> {
  let bytes = raw;
  const encodings = contentEncoding.split(',').map((name) => name.trim().toLowerCase());
  for (const name of encodings.reverse()) {
    if (name === '' || name === 'identity') continue;
    const unpack = DECODERS[name];
    if (!unpack) {
      const known = Object.keys(DECODERS).join(', ');
      throw refuse(415, 'GATEWAY_E_BODY_ENCODING', `content-encoding ${name} is not one of ${known}`);
    }
    try {
      bytes = await unpack(bytes, { maxOutputLength: limit });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLong(limit);
      throw refuse(400, 'GATEWAY_E_BODY_ENCODING', `the body is not valid ${name} data`);
    }
  }
  return bytes;
}
