// Policy loss over a flat array of tokens, with its gradient and statistics in one pass. One C interface per operation:
// every backend implements these signatures, and the addon chooses one at run time.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/status.h"

namespace treeward {

// T tokens, S sequences. Per-token arrays are read only where mask_T is not 0; elsewhere they may hold NaN.
struct PolicyLossInput {
  std::size_t tokens;
  const float* logp_T;         // under the weights being trained
  const float* logpOld_T;      // under the weights at the start of the step
  const float* logpRollout_T;  // as the engine sampled them
  const float* advantages_T;
  const float* mask_T;     // 0 leaves a token out; any other value is its weight
  const float* logpRef_T;  // reference policy; null unless `kl` is not none
  const float* entropy_T;  // entropy at the token; null unless entropyCoef is not 0
  std::size_t sequences;   // gspo only: sequence s is tokens [sequenceOffset_S1[s], sequenceOffset_S1[s + 1])
  const std::int32_t* sequenceOffset_S1;
};

enum class PolicyObjective { ppo, cispo, gspo };
enum class ImportanceMode { truncate, mask };
enum class KlEstimator { none, k1, k2, k3 };

struct PolicyLossOptions {
  double clipLow;  // ratio is clipped to [1 - clipLow, 1 + clipHigh]
  double clipHigh;
  double truncation;  // c in w = min(exp(logpOld - logpRollout), c); infinity = none
  double normaliser;  // what the sum over tokens is divided by
  PolicyObjective objective = PolicyObjective::ppo;
  double dualClip = INFINITY;  // for A < 0 the loss is at most -A * dualClip
  ImportanceMode importance = ImportanceMode::truncate;  // mask: w = 0 outside [importanceLow, truncation]
  double importanceLow = 0.0;
  KlEstimator kl = KlEstimator::none;
  double klCoef = 0.0;
  double klMax = INFINITY;  // k3 is clamped to this, without gradient beyond
  double entropyCoef = 0.0;
  double logRatioMax = 20.0;  // log-ratios are clamped to +-this and carry no gradient beyond
};

struct PolicyLossStats {
  double loss;
  double approxKl;
  double clipfrac;
  double dualClipfrac;
  double ratioMax;
  double ess;
  double truncatedFrac;
  double rolloutKl;
  double refKl;
  double entropy;
  std::uint64_t tokens;
};

// Checks everything but the per-token values.
Status checkPolicyLoss(const PolicyLossInput& input, const PolicyLossOptions& options);
// Checks the per-token values.
Status checkPolicyLossValues(const PolicyLossInput& input);

// Writes d loss / d logp into gradLogp_T (all T entries, 0 where masked). d loss / d entropy_T is
// -entropyCoef * mask / normaliser and left to the caller. On a fault nothing written is meaningful.
Status policyLossCpu(const PolicyLossInput& input, const PolicyLossOptions& options, float* gradLogp_T, PolicyLossStats* stats);

// Host pointers; copies, computes on the current device and copies back.
Status policyLossCuda(const PolicyLossInput& input, const PolicyLossOptions& options, float* gradLogp_T, PolicyLossStats* stats);

// Device pointers, values unchecked (NaN in gives NaN out). `workspace` holds policyLossWorkspace() bytes; `sums` gets
// kPolicySums doubles in device memory, which policyLossFinish turns into statistics on the host.
constexpr int kPolicySums = 12;
std::size_t policyLossWorkspace(const PolicyLossInput& input, const PolicyLossOptions& options);
void policyLossDevice(const PolicyLossInput& input, const PolicyLossOptions& options, float* gradLogp_T, double* sums,
                      void* workspace, void* stream);
PolicyLossStats policyLossFinish(const double* sums, const PolicyLossOptions& options);

}  // namespace treeward
