/**
 * The wire between supervisor and agent (the other end: init/init.h). Little-endian: u32 payload length, u32 id,
 * u8 type, 3 zero bytes, payload.
 */
export const PROTOCOL = 1;
export const MAX_FRAME = 1 << 20;
const HEADER = 12;

export const FrameType = {
  exec: 1,
  stdin: 2,
  stdinEnd: 3,
  cancel: 4,
  writeOpen: 5,
  writeData: 6,
  writeEnd: 7,
  read: 8,
  spawn: 9,
  ready: 64,
  stdout: 65,
  stderr: 66,
  exit: 67,
  data: 68,
  done: 69,
  error: 70,
  spawned: 71,
  ended: 72,
} as const;

export interface Frame {
  type: number;
  id: number;
  payload: Buffer;
}

export function encodeFrame(type: number, id: number, payload: Uint8Array = new Uint8Array()): Buffer {
  if (payload.length > MAX_FRAME)
    throw new RangeError(`frame of ${payload.length} bytes; most: ${MAX_FRAME}`);
  const out = Buffer.alloc(HEADER + payload.length);
  out.writeUInt32LE(payload.length, 0);
  out.writeUInt32LE(id, 4);
  out.writeUInt8(type, 8);
  out.set(payload, HEADER);
  return out;
}

/** Cuts a byte stream into frames, whatever pieces it arrives in. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #have = 0;

  push(piece: Buffer): Frame[] {
    this.#pieces.push(piece);
    this.#have += piece.length;
    const frames: Frame[] = [];
    for (;;) {
      if (this.#have < HEADER) return frames;
      let head = this.#pieces[0] as Buffer;
      if (head.length < HEADER) head = this.#join();
      const length = head.readUInt32LE(0);
      if (length > MAX_FRAME) throw new RangeError(`frame of ${length} bytes; most: ${MAX_FRAME}`);
      if (this.#have < HEADER + length) return frames;
      if (head.length < HEADER + length) head = this.#join();
      frames.push({
        id: head.readUInt32LE(4),
        type: head.readUInt8(8),
        payload: head.subarray(HEADER, HEADER + length),
      });
      this.#pieces[0] = head.subarray(HEADER + length);
      this.#have -= HEADER + length;
    }
  }

  #join(): Buffer {
    const all = Buffer.concat(this.#pieces);
    this.#pieces = [all];
    return all;
  }
}

export interface ExecRequest {
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  /** Milliseconds; 0: none. */
  timeout: number;
  hasStdin: boolean;
  maxOutput: number;
}

export function encodeExec(request: ExecRequest): Buffer {
  const env = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
  const head = Buffer.alloc(24);
  head.writeUInt32LE(request.argv.length, 0);
  head.writeUInt32LE(env.length, 4);
  head.writeUInt32LE(Math.min(0xffffffff, Math.ceil(request.timeout)), 8);
  head.writeUInt32LE(request.hasStdin ? 1 : 0, 12);
  head.writeBigUInt64LE(BigInt(request.maxOutput), 16);
  return Buffer.concat([head, ...[request.cwd, ...request.argv, ...env].map(zeroTerminated)]);
}

export interface ExitPayload {
  /** -1: killed by `signal`. */
  code: number;
  signal: number;
  cpuSeconds: number;
  maxRssBytes: number;
  wallMs: number;
  dropped: number;
  timedOut: boolean;
  /** What could not be done before the command ran, with its errno; null when it ran. */
  failure: { what: 'exec' | 'cwd'; errno: number } | null;
}

export function decodeExit(payload: Buffer): ExitPayload {
  const u64 = (at: number): number => Number(payload.readBigUInt64LE(at));
  const failure = payload.readUInt32LE(60);
  return {
    code: payload.readInt32LE(0),
    signal: payload.readInt32LE(4),
    cpuSeconds: (u64(8) + u64(16)) / 1e6,
    maxRssBytes: u64(24) * 1024,
    wallMs: u64(32),
    dropped: u64(40) + u64(48),
    timedOut: payload.readUInt32LE(56) === 1,
    failure: failure ? { what: failure === 3 ? 'cwd' : 'exec', errno: payload.readInt32LE(64) } : null,
  };
}

export const zeroTerminated = (text: string): Buffer => Buffer.from(`${text}\0`);
