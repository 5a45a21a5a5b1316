#include <algorithm>
#include <vector>

#include "common/parallel.h"
#include "common/target.h"
#include "kernels/causal_gae/causal_gae.h"

namespace treeward {
namespace {

// The value and return at a segment's first token, and the reward that a segment without tokens passes on.
struct Front {
  float value, target, reward;
};

constexpr int kStep = 16;

// Tokens [begin, end) given what follows the last one: `target` and `value` after it, `reward` at it. Works backwards in steps
// whose tokens first see nothing from the right; only one multiplication and addition per step waits for the step before.
TREEWARD_VECTOR_CLONES void sweep(const float* values_T, std::int32_t begin, std::int32_t end, float gamma, float lambda, float reward,
                                  float value, float target, float* advantages_T, float* targets_T) {
  const float trace = gamma * lambda, bootstrap = gamma * (1.0f - lambda);
  float power[kStep];  // power[i]: what a target after the step counts at its token i
  power[kStep - 1] = trace;
  for (int i = kStep - 2; i >= 0; --i) power[i] = power[i + 1] * trace;

  std::int32_t t = end - 1;
  target = reward + bootstrap * value + trace * target;
  targets_T[t] = target;
  advantages_T[t] = target - values_T[t];
  for (; t - kStep >= begin; t -= kStep) {
    const float* next = values_T + t - kStep + 1;  // V of the token after each
    float local[kStep];
    for (int i = 0; i < kStep; ++i) local[i] = bootstrap * next[i];
    // Doubling: after the pass with distance d an entry holds the sum over the 2d tokens from it on.
    float factor = trace;
    for (int d = 1; d < kStep; d *= 2, factor *= factor) {
      float shifted[kStep];
      for (int i = 0; i < kStep; ++i) shifted[i] = i + d < kStep ? local[i + d < kStep ? i + d : i] : 0.0f;
      for (int i = 0; i < kStep; ++i) local[i] += factor * shifted[i];
    }
    float* out = targets_T + t - kStep;
    float* advantage = advantages_T + t - kStep;
    const float* own = values_T + t - kStep;
    for (int i = 0; i < kStep; ++i) {
      const float g = local[i] + power[i] * target;
      out[i] = g;
      advantage[i] = g - own[i];
    }
    target = out[0];
  }
  for (--t; t >= begin; --t) {
    target = bootstrap * values_T[t + 1] + trace * target;
    targets_T[t] = target;
    advantages_T[t] = target - values_T[t];
  }
}

}  // namespace

Status causalGaeCpu(const CausalGaeInput& in, const CausalGaeOptions& o, float* advantages_T, float* targets_T) {
  if (const Status status = checkCausalGae(in, o); !status.ok()) return status;
  CausalPlan plan;
  if (const Status status = planCausalGae(in, INT32_MAX, &plan); !status.ok()) return status;
  const float gamma = static_cast<float>(o.gamma), lambda = static_cast<float>(o.lambda);
  std::vector<Front> front_S(plan.begin_S.size());
  const std::size_t perRollout = in.rollouts ? in.tokens / in.rollouts + 1 : 1;
  parallelFor(in.rollouts, 65536 / perRollout + 1, [&](std::size_t from, std::size_t to) {
    for (std::int32_t s = plan.segmentOffset_R1[from]; s < plan.segmentOffset_R1[to]; ++s) {
      const auto i = static_cast<std::size_t>(s);
      Front after{0.0f, 0.0f, plan.reward_S[i]};
      for (std::int32_t e = plan.successorOffset_S1[i]; e < plan.successorOffset_S1[i + 1]; ++e) {
        const Front& next = front_S[static_cast<std::size_t>(plan.successor_K[static_cast<std::size_t>(e)])];
        const float w = plan.weight_K[static_cast<std::size_t>(e)];
        after.value += w * next.value;
        after.target += w * next.target;
        after.reward += w * next.reward;
      }
      const std::int32_t begin = plan.begin_S[i], end = plan.end_S[i];
      if (begin == end) {
        front_S[i] = after;
        continue;
      }
      sweep(in.values_T, begin, end, gamma, lambda, after.reward, after.value, after.target, advantages_T, targets_T);
      front_S[i] = {in.values_T[begin], targets_T[begin], 0.0f};
    }
  });
  return {};
}

}  // namespace treeward
