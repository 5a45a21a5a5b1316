// The memory-bound steps of a decoder and its optimizer, as shares of copy bandwidth in the same run. Bytes are those of operands
// and results; results of all but adamw are new arrays, whose pages the system clears first: that is in the time, not in the bytes.
import { adamw, rmsNorm, rmsNormBackward, rope, ropeTables, swiglu, swigluBackward } from '@treeward/native';
import { assertClose, fractionRow, noise, row, time, type OperatorBench, type Row } from './harness.bench.js';
import { rmsNormReference } from './testing/rms-norm-reference.js';
import { ropeReference } from './testing/rope-reference.js';
import { swigluReference } from './testing/swiglu-reference.js';

const uniform = noise();
const floats = (n: number): Float32Array => Float32Array.from({ length: n }, () => 2 * uniform() - 1);

/** A row per call with its time, and one with its share of copy bandwidth. */
async function shares(
  name: string,
  calls: Record<string, { bytesPerValue: number; call: () => unknown }>,
  values: number,
  { quick, copyBytesPerMs }: Parameters<OperatorBench>[0],
): Promise<Row[]> {
  const timings = await time(
    Object.fromEntries(Object.entries(calls).map(([key, { call }]) => [key, call])),
    quick,
  );
  return Object.entries(calls).flatMap(([key, { bytesPerValue }]) => {
    const timing = timings[key]!;
    const share = (bytesPerValue * values) / timing.p50 / copyBytesPerMs;
    return [
      row(`${name}/${key}`, timing, { values }),
      fractionRow(`${name}/${key}/stream_fraction`, share, timing.n, { values, bytesPerValue }),
    ];
  });
}

export const rmsNormBench: OperatorBench = async (context) => {
  const small = { x_RD: floats(96), gain_GD: floats(32) };
  assertClose(
    rmsNorm(small, { width: 32 }).y_RD,
    rmsNormReference(small, { width: 32 }).y_RD,
    1e-5,
    'rms_norm',
  );
  const rows = [];
  const values = 1 << (context.quick ? 20 : 22);
  for (const width of [32, 256, 1024]) {
    const [x_RD, gradY_RD, gain_GD] = [floats(values), floats(values), floats(width)];
    const { scale_R } = rmsNorm({ x_RD, gain_GD }, { width });
    const calls = {
      forward: { bytesPerValue: 8, call: () => rmsNorm({ x_RD, gain_GD }, { width }) },
      backward: {
        bytesPerValue: 12,
        call: () => rmsNormBackward({ x_RD, gain_GD, scale_R, gradY_RD }, { width }),
      },
    };
    rows.push(...(await shares(`rms_norm/D=${width}`, calls, values, context)));
  }
  return rows;
};

export const ropeBench: OperatorBench = async (context) => {
  const [heads, dim] = [8, 64];
  const options = { heads, dim, frequencies: dim / 2 };
  const tables = ropeTables(
    4096,
    Array.from({ length: dim / 2 }, (_, f) => 1e6 ** ((-2 * f) / dim)),
  );
  const input = (tokens: number): Parameters<typeof rope>[0] => ({
    x_THD: floats(tokens * heads * dim),
    position_T: Int32Array.from({ length: tokens }, (_, t) => t % 4096),
    ...tables,
  });
  const small = input(7);
  assertClose(rope(small, options), ropeReference(small, options), 1e-5, 'rope');
  const large = input(context.quick ? 2048 : 8192);
  const calls = { forward: { bytesPerValue: 8, call: () => rope(large, options) } };
  return shares(`rope/H=${heads}/D=${dim}`, calls, large.x_THD.length, context);
};

export const swigluBench: OperatorBench = async (context) => {
  const values = 1 << (context.quick ? 20 : 22);
  const [gate_N, up_N, gradY_N] = [floats(values), floats(values), floats(values)];
  const small = [gate_N.subarray(0, 99), up_N.subarray(0, 99)] as const;
  assertClose(swiglu({ gate_N: small[0], up_N: small[1] }), swigluReference(...small).y_N, 1e-5, 'swiglu');
  const calls = {
    forward: { bytesPerValue: 12, call: () => swiglu({ gate_N, up_N }) },
    backward: { bytesPerValue: 20, call: () => swigluBackward({ gate_N, up_N, gradY_N }) },
  };
  return shares(`swiglu/N=${values}`, calls, values, context);
};

export const adamwBench: OperatorBench = async (context) => {
  const values = 1 << (context.quick ? 20 : 22);
  const arrays = {
    param_N: floats(values),
    grad_N: floats(values),
    m_N: floats(values),
    v_N: floats(values).map(Math.abs),
  };
  const options = { lr: 1e-6, betas: [0.9, 0.999], eps: 1e-8, step: 10 } as const;
  const call = (): void => {
    adamw(arrays, options);
  };
  return shares(`adamw/N=${values}`, { step: { bytesPerValue: 28, call } }, values, context);
};
