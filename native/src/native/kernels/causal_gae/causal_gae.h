// Generalised advantage estimation along the causal order of calls, for many rollouts at once:
//
//   G_t = r_t + gamma * ((1 - lambda) * V_next + lambda * G_next),   advantage = G_t - V_t,   target = G_t
//
// Within a call "next" is the next token. At a call's last token it is the weighted sum over the first tokens of the call's
// successors, and r_t = the call's reward; without successors there is no bootstrap. A call without tokens is transparent:
// its reward and its successors pass to its predecessors, undiscounted. The recursion on G rather than on the advantage makes
// gamma = lambda = 1 give exactly R - V_t.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/status.h"

namespace treeward {

// R rollouts, C calls, T tokens, L causal edges. Rollout r has calls [callOffset_R1[r], callOffset_R1[r + 1]), call c has
// tokens [tokenOffset_C1[c], tokenOffset_C1[c + 1]) and successors successor_L[successorOffset_C1[c] ..), which are call
// numbers of the same rollout.
struct CausalGaeInput {
  std::size_t rollouts, calls, tokens, edges;
  const float* values_T;
  const std::int32_t* callOffset_R1;
  const std::int32_t* tokenOffset_C1;
  const std::int32_t* successorOffset_C1;
  const std::int32_t* successor_L;
  const float* weight_L;
  const float* reward_C;
};

struct CausalGaeOptions {
  double gamma;
  double lambda;
};

// The order as the kernels use it. A segment is a stretch of tokens that only follow one another: calls in a row joined by
// single edges of weight 1 without a reward between them, cut again at `longest` tokens. S segments, K edges between them.
// Segments of a rollout lie together and come after their successors.
struct CausalPlan {
  std::vector<std::int32_t> segmentOffset_R1;
  std::vector<std::int32_t> begin_S, end_S;
  std::vector<float> reward_S;
  std::vector<std::int32_t> successorOffset_S1, successor_K;
  std::vector<float> weight_K;
};

// Checks everything but values_T.
Status checkCausalGae(const CausalGaeInput& input, const CausalGaeOptions& options);
Status checkCausalGaeValues(const CausalGaeInput& input);
// @pre checkCausalGae found nothing. A cycle is found here.
Status planCausalGae(const CausalGaeInput& input, std::size_t longest, CausalPlan* plan);

Status causalGaeCpu(const CausalGaeInput& input, const CausalGaeOptions& options, float* advantages_T, float* targets_T);
Status causalGaeCuda(const CausalGaeInput& input, const CausalGaeOptions& options, float* advantages_T, float* targets_T);

// The plan in device memory. `state` holds causalGaeState(segments) floats.
struct CausalPlanView {
  std::size_t rollouts, segments, tokens;
  const std::int32_t *segmentOffset_R1, *begin_S, *end_S;
  const float* reward_S;
  const std::int32_t *successorOffset_S1, *successor_K;
  const float* weight_K;
};
inline std::size_t causalGaeState(std::size_t segments) { return 5 * segments; }
// One warp per rollout from this many rollouts on (values are read once); below, the three phases of one warp per segment.
constexpr std::size_t kCausalGaeFusedRollouts = 1024;
// Cut for planCausalGae that suits the device entry point.
std::size_t causalGaeLongest(std::size_t rollouts);
void causalGaeDevice(const CausalPlanView& plan, const float* values_T, const CausalGaeOptions& options, float* state,
                     float* advantages_T, float* targets_T, void* stream);

}  // namespace treeward
