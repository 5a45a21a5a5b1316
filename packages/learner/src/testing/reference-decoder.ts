import type { ModelConfig } from '../model/config.js';
import { EMBED, FINAL_NORM, HEAD, layerParam, VALUE_BIAS, VALUE_WEIGHT } from '../model/params.js';
import { inverseFrequencies } from '../model/rope.js';

/** Arrays in float64, flat, by transformers' names. */
export type Params64 = ReadonlyMap<string, Float64Array>;

/** At each place of a row but the last: the next token's log-probability, the distribution's entropy, and the value there. */
export interface Reading64 {
  logprob: number;
  entropy: number;
  value: number;
}

const sum = (values: ArrayLike<number>): number => Array.from(values).reduce((a, b) => a + b, 0);

/** W x, W flat [rows, x.length]. */
function times(weight: Float64Array, x: readonly number[]): number[] {
  return Array.from({ length: weight.length / x.length }, (_, i) => {
    let total = 0;
    for (let j = 0; j < x.length; j++) total += weight[i * x.length + j]! * x[j]!;
    return total;
  });
}

function rmsNorm(x: readonly number[], gain: Float64Array, eps: number): number[] {
  const scale = 1 / Math.sqrt(sum(x.map((v) => v * v)) / x.length + eps);
  return x.map((v, i) => v * scale * gain[i]!);
}

/** Pairs (i, i + h/2), as transformers rotates. */
function rotate(x: readonly number[], position: number, frequencies: Float64Array): number[] {
  const half = x.length / 2;
  return x.map((v, i) => {
    const angle = position * frequencies[i % half]!;
    const other = i < half ? -x[i + half]! : x[i - half]!;
    return v * Math.cos(angle) + other * Math.sin(angle);
  });
}

const heads = (x: readonly number[], size: number): number[][] =>
  Array.from({ length: x.length / size }, (_, h) => x.slice(h * size, (h + 1) * size));

/**
 * An untied decoder written out plainly, one row at a time, every number a float64: what finite differences are taken of.
 * A model without a value head has value 0.
 */
export function readRow(config: ModelConfig, params: Params64, row: readonly number[]): Reading64[] {
  const { hiddenSize: d, headDim, heads: H, kvHeads, normEps } = config;
  const get = (name: string): Float64Array => params.get(name)!;
  const frequencies = inverseFrequencies(config);
  let x = row.map((token) => Array.from(get(EMBED).subarray(token * d, (token + 1) * d)));
  for (let l = 0; l < config.layers; l++) {
    const of = (name: string): Float64Array => get(layerParam(l, name));
    const unit = x.map((v) => rmsNorm(v, of('input_layernorm'), normEps));
    const turned = (v: readonly number[], name: 'q' | 'k', position: number): number[][] =>
      heads(times(of(`self_attn.${name}_proj`), v), headDim).map((head) => {
        const whole = config.family === 'qwen3' ? rmsNorm(head, of(`self_attn.${name}_norm`), normEps) : head;
        return rotate(whole, position, frequencies);
      });
    const q = unit.map((v, n) => turned(v, 'q', n));
    const k = unit.map((v, n) => turned(v, 'k', n));
    const values = unit.map((v) => heads(times(of('self_attn.v_proj'), v), headDim));
    const middle = x.map((v, n) => {
      const merged = Array.from({ length: H }, (_, h) => {
        const kv = Math.floor((h * kvHeads) / H);
        const scores = k.slice(0, n + 1).map((key) => {
          const dot = sum(key[kv]!.map((a, i) => a * q[n]![h]![i]!));
          return Math.exp(dot / Math.sqrt(headDim));
        });
        const total = sum(scores);
        return values[0]![kv]!.map((_, i) => sum(scores.map((s, m) => (s / total) * values[m]![kv]![i]!)));
      }).flat();
      const attended = times(of('self_attn.o_proj'), merged);
      return v.map((a, i) => a + attended[i]!);
    });
    x = middle.map((v) => {
      const inner = rmsNorm(v, of('post_attention_layernorm'), normEps);
      const up = times(of('mlp.up_proj'), inner);
      const gated = times(of('mlp.gate_proj'), inner).map((g, i) => (g / (1 + Math.exp(-g))) * up[i]!);
      const down = times(of('mlp.down_proj'), gated);
      return v.map((a, i) => a + down[i]!);
    });
  }
  return x.slice(0, -1).map((v, n) => {
    const unit = rmsNorm(v, get(FINAL_NORM), normEps);
    const value = params.has(VALUE_WEIGHT) ? times(get(VALUE_WEIGHT), unit)[0]! + get(VALUE_BIAS)[0]! : 0;
    const logits = times(get(HEAD), unit);
    const normaliser = Math.log(sum(logits.map(Math.exp)));
    const entropy = -sum(logits.map((z) => Math.exp(z - normaliser) * (z - normaliser)));
    return { logprob: logits[row[n + 1]!]! - normaliser, entropy, value };
  });
}
