import type { Kernels } from './kernels.js';
import type { Tensor } from './load.js';
import type { Ops } from './ops.js';

/** The fused steps out of TensorFlow's own operators: slower, everywhere. */
export function composedKernels(ops: Ops): Kernels {
  const normalise = (x: Tensor, eps: number): { unit: Tensor; scale: Tensor } => {
    const scale = ops.rsqrt(ops.add(ops.mean(ops.square(x), x.shape.length - 1), ops.constant(eps)));
    return { unit: ops.mul(x, scale), scale };
  };
  const normGrad = (unit: Tensor, scale: Tensor, gradUnit: Tensor): Tensor => {
    const along = ops.mean(ops.mul(gradUnit, unit), unit.shape.length - 1);
    return ops.mul(ops.sub(gradUnit, ops.mul(unit, along)), scale);
  };
  return {
    norm(x, eps, addend) {
      const sum = addend ? ops.add(x, addend) : x;
      return { ...normalise(sum, eps), sum };
    },
    normGrad(unit, scale, gradUnit, addend) {
      const grad = normGrad(unit, scale, gradUnit);
      return addend ? ops.add(addend, grad) : grad;
    },
    headNorm(x, eps, gain) {
      const { unit, scale } = normalise(x, eps);
      return { y: ops.mul(unit, gain), scale };
    },
    headNormGrad(x, scale, gain, gradY) {
      const unit = ops.mul(x, scale);
      const h = x.shape.at(-1)!;
      const gradGain = ops.reshape(ops.sum(ops.reshape(ops.mul(gradY, unit), [-1, h]), [0]), [1, h]);
      return { gradX: normGrad(unit, scale, ops.mul(gradY, gain)), gradGain };
    },
    rope(x, { position, cos, sin }, inverse = false) {
      const [N, , h] = x.shape as [number, number, number];
      const table = (values: Tensor): Tensor => ops.reshape(ops.gather(values, position), [N, 1, h / 2]);
      const [c, s] = [table(cos), table(sin)];
      const turn = inverse ? ops.mul(s, ops.constant(-1)) : s;
      const [a, b] = ops.split(x, [h / 2, h / 2], 2) as [Tensor, Tensor];
      return ops.concat(
        [ops.sub(ops.mul(a, c), ops.mul(b, turn)), ops.add(ops.mul(b, c), ops.mul(a, turn))],
        2,
      );
    },
    swiglu: (gate, up) => ops.mul(ops.mul(gate, ops.sigmoid(gate)), up),
    swigluGrad(gate, up, gradY) {
      const sigmoid = ops.sigmoid(gate);
      const silu = ops.mul(gate, sigmoid);
      const gradSilu = ops.mul(gradY, up);
      return {
        gradGate: ops.add(ops.mul(gradSilu, sigmoid), ops.mul(gate, ops.sigmoidGrad(sigmoid, gradSilu))),
        gradUp: ops.mul(gradY, silu),
      };
    },
    adamw({ lr, betas: [beta1, beta2], eps, weightDecay = 0, step, gradScale = 1 }) {
      const s = (value: number): Tensor => ops.tf.scalar(value);
      return (param, raw, moments) => {
        const grad = gradScale === 1 ? raw : ops.mul(raw, s(gradScale));
        const gradPart = ops.mul(grad, s(1 - beta1));
        const squarePart = ops.mul(ops.square(grad), s(1 - beta2));
        const m = moments ? ops.add(ops.mul(moments.m, s(beta1)), gradPart) : gradPart;
        const v = moments ? ops.add(ops.mul(moments.v, s(beta2)), squarePart) : squarePart;
        const root = ops.mul(ops.sqrt(v), s(1 / Math.sqrt(1 - beta2 ** step)));
        const move = ops.div(ops.mul(m, s(lr / (1 - beta1 ** step))), ops.add(root, s(eps)));
        const decayed = weightDecay === 0 ? param : ops.mul(param, s(1 - lr * weightDecay));
        return { param: ops.sub(decayed, move), m, v };
      };
    },
  };
}
