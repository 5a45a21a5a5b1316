// Beside PyTorch eager (all logits, then log-probability and entropy, backward by autograd): time, memory at the highest point,
// and a tuned matrix product as the yardstick. Shapes of the learner's models (hidden ≤ 256) and of larger ones.
import { execFileSync } from 'node:child_process';
import { linearLogprob, linearLogprobBackward } from '@treeward/native';
import {
  assertClose,
  fractionRow,
  noise,
  row,
  time,
  type BenchContext,
  type OperatorBench,
  type Row,
} from './harness.bench.js';
import { bfloat16 } from './testing/close.js';
import { linearLogprobReference } from './testing/linear-logprob-reference.js';

type Input = Parameters<typeof linearLogprobBackward>[0] & {
  hidden_TD: Float32Array;
  weight_VD: Float32Array;
};

function draw(T: number, D: number, V: number): Input {
  const uniform = noise();
  const floats = (n: number, scale: number): Float32Array =>
    Float32Array.from({ length: n }, () => scale * (uniform() - 0.5));
  const input = {
    hidden_TD: floats(T * D, 2),
    weight_VD: floats(V * D, 0.2),
    chosen_T: Int32Array.from({ length: T }, () => Math.floor(uniform() * V)),
  };
  return {
    ...input,
    ...linearLogprob(input, { hiddenSize: D }),
    gradLogp_T: floats(T, 1),
    gradEntropy_T: floats(T, 0.1),
  };
}

const MEMORY_SCRIPT = `
  import { readFileSync, writeFileSync } from 'node:fs';
  import { linearLogprob, linearLogprobBackward } from '@treeward/native';
  const [T, D, V] = process.argv.slice(1).map(Number);
  const field = (name) => 1024 * Number(new RegExp('^' + name + ':\\\\s+(\\\\d+) kB', 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]);
  const draw = (T, D, V) => ({
    hidden_TD: new Float32Array(T * D).fill(0.1), weight_VD: new Float32Array(V * D).fill(0.1), chosen_T: new Int32Array(T).fill(1),
    gradLogp_T: new Float32Array(T).fill(1), gradEntropy_T: new Float32Array(T).fill(1),
  });
  const step = (input, hiddenSize) => linearLogprobBackward({ ...input, ...linearLogprob(input, { hiddenSize }) }, { hiddenSize });
  step(draw(2, 2, 2), 2);
  const input = draw(T, D, V);
  writeFileSync('/proc/self/clear_refs', '5');
  const before = field('VmRSS');
  step(input, D);
  process.stdout.write(String(field('VmHWM') - before));`;

/**
 * By how much forward and backward raise resident memory at its highest, in a process that has computed nothing before: freed
 * memory that malloc keeps would hide it. Undefined where the system does not say.
 */
function peakBytes(...shape: readonly number[]): number | undefined {
  if (process.platform !== 'linux') return undefined;
  const args = ['--input-type=module', '-e', MEMORY_SCRIPT, ...shape.map(String)];
  return Number(execFileSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' }));
}

async function benchShape(
  [T, D, V]: readonly [number, number, number],
  { quick, torch }: BenchContext,
): Promise<Row[]> {
  const input = draw(T, D, V);
  const options = { hiddenSize: D };
  const half = {
    ...input,
    hidden_TD: bfloat16(input.hidden_TD).bits,
    weight_VD: bfloat16(input.weight_VD).bits,
  };
  const step = (
    from: Omit<Input, 'hidden_TD' | 'weight_VD'> & Pick<typeof half | Input, 'hidden_TD' | 'weight_VD'>,
  ): unknown => linearLogprobBackward({ ...from, ...linearLogprob(from, options) }, options);
  const arrays = {
    hidden_TD: { data: input.hidden_TD, shape: [T, D] },
    weight_VD: { data: input.weight_VD, shape: [V, D] },
    chosen_T: input.chosen_T,
    gradLogp_T: input.gradLogp_T,
    gradEntropy_T: input.gradEntropy_T,
  };
  const make = (
    direction: string,
    log_softmax: boolean,
  ): ReturnType<NonNullable<typeof torch>['prepare']> | undefined =>
    torch?.prepare('torch_peer_attention.linear_logprob', arrays, { direction, log_softmax });
  const forward = await make('forward', false);
  const both = await make('both', false);
  const softmax = await make('both', true);
  const product = await torch?.prepare('torch_peer_attention.product', {
    left_MK: arrays.hidden_TD,
    right_NK: arrays.weight_VD,
  });
  const theirs = await both?.results();
  if (theirs) {
    assertClose(theirs['logp_T']!, linearLogprob(input, options).logp_T, 1e-4, `torch linear_logprob T=${T}`);
    assertClose(
      theirs['gradWeight_VD']!,
      linearLogprobBackward(input, options).gradWeight_VD,
      1e-3,
      'torch gradient',
    );
  }
  const t = await time(
    {
      forward: () => linearLogprob(input, options),
      backward: () => linearLogprobBackward(input, options),
      both: () => step(input),
      bf16: () => step(half),
      ...(forward && both && softmax && product
        ? {
            torchForward: () => forward.run(),
            torch: () => both.run(),
            softmax: () => softmax.run(),
            product: () => product.run(),
          }
        : {}),
    },
    quick,
  );
  const cold = await time({ both: () => step(input) }, quick, { cold: true });
  const name = `linear_logprob/T=${T}/D=${D}/V=${V}`;
  const config = { T, D, V, ...(torch ? { threads: torch.threads, peer: torch.versions } : {}) };
  const rows: Row[] = [
    row(`${name}/backward`, t['backward']!, config),
    row(`${name}/bf16`, t['bf16']!, config),
    row(`${name}/cold`, cold['both']!, config),
  ];
  const eager = (p50: number): { against: string; p50: number } => ({
    against: 'torch eager: logsumexp, gather, entropy',
    p50,
  });
  rows.push(
    row(
      `${name}/forward${t['torchForward'] ? '/vs_torch' : ''}`,
      t['forward']!,
      config,
      t['torchForward'] && eager(t['torchForward'].p50),
    ),
  );
  rows.push(
    row(
      `${name}${t['torch'] ? '/vs_torch' : '/both'}`,
      t['both']!,
      config,
      t['torch'] && eager(t['torch'].p50),
    ),
  );
  if (t['softmax'] && t['product']) {
    const against = { against: 'torch eager: log_softmax', p50: t['softmax'].p50 };
    rows.push(row(`${name}/vs_torch_log_softmax`, t['both']!, config, against));
    // Products per call: the logits; and again the logits, then two gradients.
    for (const [direction, products] of [
      ['forward', 1],
      ['both', 4],
    ] as const) {
      const fraction = (products * t['product'].p50) / t[direction]!.p50;
      const gflops = (products * 2 * T * D * V) / t[direction]!.p50 / 1e6;
      rows.push(
        fractionRow(`${name}/${direction}/gemm_fraction`, fraction, t[direction]!.n, { ...config, gflops }),
      );
    }
  }
  const own = peakBytes(T, D, V);
  const peer = await both?.peakBytes();
  if (own !== undefined && peer !== undefined) {
    rows.push({
      name: `${name}/memory`,
      value: own,
      unit: 'bytes',
      better: 'lower',
      against: 'torch eager',
      ratio: peer / own,
      n: 1,
      config,
    });
  }
  for (const made of [forward, both, softmax, product]) await made?.release();
  return rows;
}

export const linearLogprobBench: OperatorBench = async (context) => {
  const small = draw(20, 16, 300);
  const want = linearLogprobReference(small, { hiddenSize: 16 });
  assertClose(small.entropy_T, want.entropy_T, 3e-5, 'linear_logprob');
  const shapes = context.quick
    ? ([[256, 128, 2048]] as const)
    : ([
        [1024, 128, 4096],
        [1024, 256, 4096],
        [512, 1024, 8192],
        [1024, 1024, 16384],
      ] as const);
  const rows: Row[] = [];
  for (const shape of shapes) rows.push(...(await benchShape(shape, context)));
  return rows;
};
