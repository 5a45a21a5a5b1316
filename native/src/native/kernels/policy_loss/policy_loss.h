// Clipped policy loss over a flat array of tokens, with its gradient. One C interface per operation: every backend
// implements these signatures, and the addon chooses one at run time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace treeward {

// T tokens. Everything is read only where mask_T is not 0; elsewhere the arrays may hold NaN.
struct PolicyLossInput {
  std::size_t tokens;
  const float* logp_T;         // under the weights being trained
  const float* logpOld_T;      // under the weights at the start of the step
  const float* logpRollout_T;  // as the engine sampled them
  const float* advantages_T;
  const float* mask_T;  // 0 leaves a token out; any other value is its weight
};

struct PolicyLossOptions {
  double clipLow;     // ratio is clipped to [1 - clipLow, 1 + clipHigh]
  double clipHigh;
  double truncation;  // c in min(exp(logpOld - logpRollout), c); infinity = none
  double normaliser;  // what the sum over tokens is divided by
};

struct PolicyLossStats {
  double loss;
  double approxKl;
  double clipfrac;
  double ratioMax;
  double ess;
  double truncatedFrac;
  double rolloutKl;
  std::uint64_t tokens;
};

// Which input made the call impossible, so that the caller can name it.
enum class PolicyLossFault { none, logp, logpOld, logpRollout, advantages, mask };

struct PolicyLossStatus {
  PolicyLossFault fault;
  std::size_t index;
};

// Log-ratios beyond this are clamped and carry no gradient (as verl and OpenRLHF do): exp(20) = 4.9e8.
constexpr double kMaxLogRatio = 20.0;

// Writes d loss / d logp into grad_T (all T entries, 0 where masked). On a fault nothing in `stats` is meaningful.
PolicyLossStatus policyLossCpu(const PolicyLossInput& input, const PolicyLossOptions& options, float* grad_T,
                               PolicyLossStats* stats);

}  // namespace treeward
