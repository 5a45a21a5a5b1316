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
 * The whole body, decoded. The limit holds before and after decoding.
 * @throws TreewardError GATEWAY_E_BODY_SIZE (413), GATEWAY_E_BODY_ENCODING (415, or 400 for damaged data),
 * GATEWAY_E_BODY_CUT (400) when the client left in the middle
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      // What is too much is read to its end, or the client would never see the answer; it is not kept.
      if (size <= limit) chunks.push(chunk);
    }
  } catch {
    throw refuse(400, 'GATEWAY_E_BODY_CUT', 'the request ended before its body was complete');
  }
  const tooLong = (): TreewardError =>
    refuse(413, 'GATEWAY_E_BODY_SIZE', `the request body is over the limit of ${limit} bytes`);
  if (size > limit) throw tooLong();
  let bytes: Buffer = Buffer.concat(chunks);
  const encodings = (request.headers['content-encoding'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase());
  for (const name of encodings.reverse()) {
    if (name === '' || name === 'identity') continue;
    const decode = DECODERS[name];
    if (!decode) {
      const known = Object.keys(DECODERS).join(', ');
      throw refuse(415, 'GATEWAY_E_BODY_ENCODING', `content-encoding ${name} is not one of ${known}`);
    }
    try {
      bytes = await decode(bytes, { maxOutputLength: limit });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLong();
      throw refuse(400, 'GATEWAY_E_BODY_ENCODING', `the body is not valid ${name} data`);
    }
  }
  return bytes;
}
