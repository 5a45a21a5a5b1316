// Memory-bound: 12 bytes per token when each value is read once. A warp takes 128 tokens at a time from a segment's end to its
// beginning: each lane composes the affine maps of its four tokens, a scan by shuffles composes the lanes', and what comes
// out at the left end is carried to the next 128.
//
// Many rollouts: one warp per rollout walks its segments in causal order (`rolloutKernel`). Few rollouts: (1) one warp per
// segment composes it, (2) one warp per rollout sweeps over segments only, (3) one warp per segment expands it to tokens.
#include "cuda/device.h"
#include "cuda/reduce.h"
#include "kernels/causal_gae/causal_gae.h"

namespace treeward {
namespace {

constexpr int kThreads = 128;
constexpr int kTile = 128;  // tokens per warp and step

struct Front {
  float value, target, reward;
};

// Structure of arrays in `state`: value_S, target_S, reward_S, composed_S.
struct State {
  float *value_S, *target_S, *reward_S, *composed_S;
};

struct Affine {  // x -> add + scale * x
  float add, scale;
};

__device__ __forceinline__ Affine compose(Affine outer, Affine inner) {
  return {outer.add + outer.scale * inner.add, outer.scale * inner.scale};
}

// What a segment's successors hand over, in every lane.
__device__ __forceinline__ Front gather(const CausalPlanView& p, const State& st, int s, int lane) {
  Front sum{0.0f, 0.0f, 0.0f};
  const int end = p.successorOffset_S1[s + 1];
  for (int e = p.successorOffset_S1[s] + lane; e < end; e += 32) {
    const int next = p.successor_K[e];
    const float w = p.weight_K[e];
    sum.value += w * st.value_S[next];
    sum.target += w * st.target_S[next];
    sum.reward += w * st.reward_S[next];
  }
  sum.value = cuda::warpSum(sum.value);
  sum.target = cuda::warpSum(sum.target);
  sum.reward = cuda::warpSum(sum.reward) + p.reward_S[s];
  return sum;
}

struct Four {
  float x[4];
};

template <bool kVector>
__device__ __forceinline__ Four loadFour(const float* data_T, int t, int begin, int end) {
  Four v;
  if (kVector && t >= begin && t + 4 <= end) {
    const float4 four = *reinterpret_cast<const float4*>(data_T + t);
    v.x[0] = four.x;
    v.x[1] = four.y;
    v.x[2] = four.z;
    v.x[3] = four.w;
    return v;
  }
  for (int i = 0; i < 4; ++i) v.x[i] = t + i >= begin && t + i < end ? data_T[t + i] : 0.0f;
  return v;
}

template <bool kVector>
__device__ __forceinline__ void storeFour(float* data_T, int t, int begin, int end, const Four& v) {
  if (kVector && t >= begin && t + 4 <= end) {
    *reinterpret_cast<float4*>(data_T + t) = make_float4(v.x[0], v.x[1], v.x[2], v.x[3]);
    return;
  }
  for (int i = 0; i < 4; ++i) {
    if (t + i >= begin && t + i < end) data_T[t + i] = v.x[i];
  }
}

// One warp over tokens [begin, end), begin < end. `last` is the constant term at the last token, `target` what its trace
// multiplies. Writes per token when kExpand. Returns the target at `begin`, in every lane.
template <bool kVector, bool kExpand>
__device__ __forceinline__ float walk(const float* values_T, int begin, int end, float trace, float bootstrap, float last, float target,
                                      float* advantages_T, float* targets_T, int lane) {
  float valueRight = 0.0f;  // V of the token right of the tile
  // Tiles start at multiples of four tokens, so that a lane's four lie in one aligned 16 bytes.
  int tile = ((end + 3) & ~3) - kTile;
  Four v = loadFour<kVector>(values_T, tile + 4 * lane, begin, end);
  for (;;) {
    const int t = tile + 4 * lane;
    const bool more = tile > begin;
    Four ahead{};  // without vectors it would not fit into the registers that full occupancy leaves
    if (kVector && more) ahead = loadFour<kVector>(values_T, t - kTile, begin, end);

    float right = __shfl_down_sync(~0u, v.x[0], 1);
    if (lane == 31) right = valueRight;
    valueRight = __shfl_sync(~0u, v.x[0], 0);

    Affine own{0.0f, 1.0f};  // from the target right of the lane's tokens to the one at its first token
    float add[4], scale[4];
    for (int i = 3; i >= 0; --i) {
      const int token = t + i;
      const bool inside = token >= begin && token < end;
      const float next = i == 3 ? right : v.x[i + 1 < 4 ? i + 1 : 3];
      add[i] = inside ? (token == end - 1 ? last : bootstrap * next) : 0.0f;
      scale[i] = inside ? trace : 1.0f;
      own = compose({add[i], scale[i]}, own);
    }
    for (int d = 1; d < 32; d *= 2) {
      const Affine other{__shfl_down_sync(~0u, own.add, static_cast<unsigned>(d)), __shfl_down_sync(~0u, own.scale, static_cast<unsigned>(d))};
      if (lane + d < 32) own = compose(own, other);
    }
    const float mine = own.add + own.scale * target;  // at the lane's first token
    if (kExpand) {
      float g = __shfl_down_sync(~0u, mine, 1);
      if (lane == 31) g = target;
      Four targets, advantages;
      for (int i = 3; i >= 0; --i) {
        g = add[i] + scale[i] * g;
        targets.x[i] = g;
        advantages.x[i] = g - v.x[i];
      }
      storeFour<kVector>(targets_T, t, begin, end, targets);
      storeFour<kVector>(advantages_T, t, begin, end, advantages);
    }
    target = __shfl_sync(~0u, mine, 0);
    if (!more) return target;
    v = kVector ? ahead : loadFour<kVector>(values_T, t - kTile, begin, end);
    tile -= kTile;
  }
}

template <bool kVector>
__global__ void __launch_bounds__(kThreads) rolloutKernel(CausalPlanView p, const float* values_T, float gamma, float lambda, State st,
                                                          float* advantages_T, float* targets_T) {
  const int r = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (r >= static_cast<int>(p.rollouts)) return;
  const float trace = gamma * lambda, bootstrap = gamma * (1.0f - lambda);
  for (int s = p.segmentOffset_R1[r]; s < p.segmentOffset_R1[r + 1]; ++s) {
    const Front after = gather(p, st, s, lane);
    const int begin = p.begin_S[s], end = p.end_S[s];
    Front front = after;
    if (begin < end) {
      front.target = walk<kVector, true>(values_T, begin, end, trace, bootstrap, after.reward + bootstrap * after.value, after.target,
                                         advantages_T, targets_T, lane);
      front.value = values_T[begin];
      front.reward = 0.0f;
    }
    if (lane == 0) {
      st.value_S[s] = front.value;
      st.target_S[s] = front.target;
      st.reward_S[s] = front.reward;
    }
    __syncwarp();  // the next segment's lanes read it
  }
}

// Phase 1: the target at the first token if nothing followed the last one and it had no reward.
template <bool kVector>
__global__ void __launch_bounds__(kThreads) composeKernel(CausalPlanView p, const float* values_T, float trace, float bootstrap, State st) {
  const int s = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (s >= static_cast<int>(p.segments)) return;
  const int begin = p.begin_S[s], end = p.end_S[s];
  if (begin == end) return;
  const float composed = walk<kVector, false>(values_T, begin, end, trace, bootstrap, 0.0f, 0.0f, nullptr, nullptr, lane);
  if (lane == 0) st.composed_S[s] = composed;
}

// Phase 2. Leaves in `composed_S` what the last token's trace multiplies and in `reward_S` its constant term, for phase 3.
__global__ void __launch_bounds__(kThreads) sweepKernel(CausalPlanView p, const float* values_T, float trace, float bootstrap, State st,
                                                        float* last_S) {
  const int r = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (r >= static_cast<int>(p.rollouts)) return;
  for (int s = p.segmentOffset_R1[r]; s < p.segmentOffset_R1[r + 1]; ++s) {
    const Front after = gather(p, st, s, lane);
    const int begin = p.begin_S[s], end = p.end_S[s];
    if (lane == 0) {
      const float last = after.reward + bootstrap * after.value;
      last_S[s] = last;
      if (begin < end) {
        const float composed = st.composed_S[s];
        st.composed_S[s] = after.target;
        st.target_S[s] = composed + powf(trace, static_cast<float>(end - begin - 1)) * (last + trace * after.target);
        st.value_S[s] = values_T[begin];
        st.reward_S[s] = 0.0f;
      } else {
        st.target_S[s] = after.target;
        st.value_S[s] = after.value;
        st.reward_S[s] = after.reward;
      }
    }
    __syncwarp();
  }
}

// Phase 3.
template <bool kVector>
__global__ void __launch_bounds__(kThreads) expandKernel(CausalPlanView p, const float* values_T, float trace, float bootstrap, State st,
                                                         const float* last_S, float* advantages_T, float* targets_T) {
  const int s = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (s >= static_cast<int>(p.segments)) return;
  const int begin = p.begin_S[s], end = p.end_S[s];
  if (begin == end) return;
  walk<kVector, true>(values_T, begin, end, trace, bootstrap, last_S[s], st.composed_S[s], advantages_T, targets_T, lane);
}

unsigned blocksFor(std::size_t warps) { return static_cast<unsigned>((warps * 32 + kThreads - 1) / kThreads); }

bool isAligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

template <bool kVector>
void run(const CausalPlanView& p, const float* values_T, const CausalGaeOptions& o, float* state, float* advantages_T, float* targets_T,
         cudaStream_t stream) {
  const float gamma = static_cast<float>(o.gamma), lambda = static_cast<float>(o.lambda);
  const float trace = gamma * lambda, bootstrap = gamma * (1.0f - lambda);
  const std::size_t n = p.segments;
  const State st{state, state + n, state + 2 * n, state + 3 * n};
  if (p.rollouts >= kCausalGaeFusedRollouts) {
    cuda::launch(rolloutKernel<kVector>, blocksFor(p.rollouts), kThreads, 0, stream, p, values_T, gamma, lambda, st, advantages_T, targets_T);
    return;
  }
  float* last_S = state + 4 * n;
  cuda::launch(composeKernel<kVector>, blocksFor(n), kThreads, 0, stream, p, values_T, trace, bootstrap, st);
  cuda::launch(sweepKernel, blocksFor(p.rollouts), kThreads, 0, stream, p, values_T, trace, bootstrap, st, last_S);
  cuda::launch(expandKernel<kVector>, blocksFor(n), kThreads, 0, stream, p, values_T, trace, bootstrap, st, last_S, advantages_T, targets_T);
}

}  // namespace

std::size_t causalGaeLongest(std::size_t rollouts) { return rollouts >= kCausalGaeFusedRollouts ? INT32_MAX : 2048; }

void causalGaeDevice(const CausalPlanView& p, const float* values_T, const CausalGaeOptions& o, float* state, float* advantages_T,
                     float* targets_T, void* streamPointer) {
  if (p.segments == 0 || p.tokens == 0) return;
  const cudaStream_t stream = static_cast<cudaStream_t>(streamPointer);
  const bool vector = isAligned(values_T) && isAligned(advantages_T) && isAligned(targets_T);
  (vector ? run<true> : run<false>)(p, values_T, o, state, advantages_T, targets_T, stream);
}

Status causalGaeCuda(const CausalGaeInput& in, const CausalGaeOptions& o, float* advantages_T, float* targets_T) {
  if (const Status status = checkCausalGae(in, o); !status.ok()) return status;
  if (const Status status = checkCausalGaeValues(in); !status.ok()) return status;
  CausalPlan plan;
  if (const Status status = planCausalGae(in, causalGaeLongest(in.rollouts), &plan); !status.ok()) return status;
  if (in.tokens == 0) return {};
  const cudaStream_t stream = cuda::Stream::current();
  const std::size_t segments = plan.begin_S.size();
  using Ints = cuda::Buffer<std::int32_t>;
  using Floats = cuda::Buffer<float>;
  const Ints segmentOffset(plan.segmentOffset_R1.data(), in.rollouts + 1, stream), begin(plan.begin_S.data(), segments, stream),
      end(plan.end_S.data(), segments, stream), successorOffset(plan.successorOffset_S1.data(), segments + 1, stream),
      successor(plan.successor_K.data(), plan.successor_K.size(), stream);
  const Floats reward(plan.reward_S.data(), segments, stream), weight(plan.weight_K.data(), plan.weight_K.size(), stream),
      values(in.values_T, in.tokens, stream), advantages(in.tokens, stream), targets(in.tokens, stream),
      state(causalGaeState(segments), stream);
  const CausalPlanView view{in.rollouts,   segments,      in.tokens,         segmentOffset.data(), begin.data(),
                            end.data(),    reward.data(), successorOffset.data(), successor.data(),     weight.data()};
  causalGaeDevice(view, values.data(), o, state.data(), advantages.data(), targets.data(), stream);
  advantages.download(advantages_T);
  targets.download(targets_T);
  cuda::Stream::synchronize();
  return {};
}

}  // namespace treeward
