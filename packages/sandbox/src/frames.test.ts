import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeExec, encodeFrame, FrameReader, MAX_FRAME, type Frame } from './frames.js';

describe('frames', () => {
  it('come back whole, whatever pieces the stream arrives in', () => {
    const frame = fc.record({
      type: fc.integer({ min: 0, max: 255 }),
      id: fc.integer({ min: 0, max: 0xffffffff }),
      payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        (frames, cuts) => {
          const stream = Buffer.concat(frames.map(({ type, id, payload }) => encodeFrame(type, id, payload)));
          const reader = new FrameReader();
          const out: Frame[] = [];
          let at = 0;
          for (let i = 0; at < stream.length; i++) {
            const size = cuts.length ? (cuts[i % cuts.length] as number) : stream.length;
            out.push(...reader.push(stream.subarray(at, at + size)));
            at += size;
          }
          expect(out.map((f) => ({ ...f, payload: Buffer.from(f.payload) }))).toEqual(frames);
        },
      ),
    );
  });

  it('are refused when too large, in both directions', () => {
    expect(() => encodeFrame(1, 1, new Uint8Array(MAX_FRAME + 1))).toThrow(RangeError);
    const header = encodeFrame(1, 1);
    header.writeUInt32LE(MAX_FRAME + 1, 0);
    expect(() => new FrameReader().push(header)).toThrow(RangeError);
  });

  it('lay an exec request out as command.c reads it', () => {
    const bytes = encodeExec({
      argv: ['echo', 'hi'],
      env: { A: '1' },
      cwd: '/w',
      timeout: 1500.2,
      hasStdin: true,
      maxOutput: 7,
    });
    expect(bytes.readUInt32LE(0)).toBe(2);
    expect(bytes.readUInt32LE(4)).toBe(1);
    expect(bytes.readUInt32LE(8)).toBe(1501);
    expect(bytes.readUInt32LE(12)).toBe(1);
    expect(bytes.readBigUInt64LE(16)).toBe(7n);
    expect(bytes.subarray(24).toString()).toBe('/w\0echo\0hi\0A=1\0');
  });
});
