import { guarded, lengthOf, promised } from './call.js';
import { NativeError } from './errors.js';
import { loadBinding } from './load-binding.js';

/**
 * R rollouts, C calls, T tokens, L causal edges. Rollout r has calls `[callOffset_R1[r], callOffset_R1[r + 1])`, call c has
 * tokens `[tokenOffset_C1[c], tokenOffset_C1[c + 1])` (none is allowed) and successors
 * `successor_L[successorOffset_C1[c] .. successorOffset_C1[c + 1])`, call numbers of the same rollout.
 */
export interface CausalGaeInput {
  /** Value before each token. */
  values_T: Float32Array;
  callOffset_R1: Int32Array;
  tokenOffset_C1: Int32Array;
  successorOffset_C1: Int32Array;
  successor_L: Int32Array;
  /** What a successor counts; those of one call usually add to 1. */
  weight_L: Float32Array;
  /** Received after the call's last token: the rollout's reward at its sinks, 0 elsewhere. */
  reward_C: Float32Array;
}

export interface CausalGaeOptions {
  /** In [0, 1]. */
  gamma: number;
  /** In [0, 1]. */
  lambda: number;
}

export interface CausalGaeResult {
  advantages_T: Float32Array;
  /** advantage + value: what the critic is trained towards. */
  targets_T: Float32Array;
}

/**
 * Arrays for the results instead of new ones, each as long as the tokens and apart from the inputs. Worth it from about a
 * million tokens on: the pages of a new array cost as much as the operator.
 */
export interface CausalGaeInto {
  advantages_T?: Float32Array;
  targets_T?: Float32Array;
}

/** Tokens from which the copies to a GPU and back are worth it. */
const WORTHWHILE_T = 1 << 20;

/**
 * Generalised advantage estimation along the causal order of calls:
 *
 *   G_t = r_t + γ ((1 − λ) V_next + λ G_next),   A_t = G_t − V_t,   target_t = G_t
 *
 * "Next" is the next token of the call; at its last token the weighted sum over the first tokens of the successors (nothing
 * at a sink). A call without tokens is transparent: its reward and successors pass to its predecessors, undiscounted.
 * γ = λ = 1 gives exactly R − V_t for any order whose weights add to 1.
 *
 * @throws NativeError NATIVE_E_CYCLE; NATIVE_E_VALUE (NaN, a negative weight, offsets that decrease, a successor in another
 *   rollout); NATIVE_E_TYPE, NATIVE_E_LENGTH, NATIVE_E_OPTION, NATIVE_E_LOAD, NATIVE_E_DEVICE
 */
export function causalGae(
  input: CausalGaeInput,
  options: CausalGaeOptions,
  into?: CausalGaeInto,
): CausalGaeResult {
  const { binding, backend } = loadBinding(lengthOf(input, 'values_T'), WORTHWHILE_T);
  return guarded(() => binding.causalGae(input, options, backend, into));
}

/** `causalGae` off the JavaScript thread: see `promised`. */
export const causalGaeAsync = promised(causalGae);

/** The causal order of one rollout, as tree-recovery gives it: successors are positions among the rollout's calls. */
export interface CausalOrderLike {
  offset_C1: Int32Array;
  successor_L: Int32Array;
  weight_L: Float32Array;
}

/**
 * Joins the orders of several rollouts into the arrays of one batch.
 *
 * @throws NativeError NATIVE_E_LENGTH when an order's weights do not match its successors
 */
export function joinCausalOrders(
  orders: readonly CausalOrderLike[],
): Pick<CausalGaeInput, 'callOffset_R1' | 'successorOffset_C1' | 'successor_L' | 'weight_L'> {
  const calls = orders.reduce((sum, { offset_C1 }) => sum + offset_C1.length - 1, 0);
  const edges = orders.reduce((sum, { successor_L }) => sum + successor_L.length, 0);
  const callOffset_R1 = new Int32Array(orders.length + 1);
  const successorOffset_C1 = new Int32Array(calls + 1);
  const successor_L = new Int32Array(edges);
  const weight_L = new Float32Array(edges);
  let [call, edge] = [0, 0];
  orders.forEach((order, rollout) => {
    if (
      order.weight_L.length !== order.successor_L.length ||
      order.offset_C1.at(-1) !== order.successor_L.length
    ) {
      throw new NativeError(
        'NATIVE_E_LENGTH',
        `order ${rollout}: offsets, successors and weights do not match`,
      );
    }
    const [firstCall, firstEdge] = [call, edge];
    for (let c = 0; c + 1 < order.offset_C1.length; c++)
      successorOffset_C1[call++] = firstEdge + order.offset_C1[c]!;
    order.successor_L.forEach((s) => (successor_L[edge++] = firstCall + s));
    weight_L.set(order.weight_L, firstEdge);
    callOffset_R1[rollout + 1] = call;
  });
  successorOffset_C1[call] = edge;
  return { callOffset_R1, successorOffset_C1, successor_L, weight_L };
}
