// Clipped value loss over a flat array of tokens, with its gradient and statistics in one pass.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/status.h"

namespace treeward {

// T tokens. Everything is read only where mask_T is not 0.
struct ValueLossInput {
  std::size_t tokens;
  const float* values_T;     // of the weights being trained
  const float* valuesOld_T;  // at the start of the step
  const float* targets_T;
  const float* mask_T;  // 0 leaves a token out; any other value is its weight
};

struct ValueLossOptions {
  double clip;        // the new value moves at most this far from the old one; infinity = not clipped
  double normaliser;  // what the sum over tokens is divided by
};

struct ValueLossStats {
  double loss;  // 1/2 sum of mask * max((v - target)^2, (clip(v) - target)^2) / normaliser
  double clipfrac;
  double explainedVariance;  // 1 - var(target - v) / var(target); 0 when the targets are all equal
  std::uint64_t tokens;
};

Status checkValueLoss(const ValueLossOptions& options);
// Checks the per-token values.
Status checkValueLossValues(const ValueLossInput& input);

Status valueLossCpu(const ValueLossInput& input, const ValueLossOptions& options, float* gradValues_T, ValueLossStats* stats);
Status valueLossCuda(const ValueLossInput& input, const ValueLossOptions& options, float* gradValues_T, ValueLossStats* stats);

// Device pointers, values unchecked; see policy_loss.h.
constexpr int kValueSums = 7;
std::size_t valueLossWorkspace(std::size_t tokens);
void valueLossDevice(const ValueLossInput& input, const ValueLossOptions& options, float* gradValues_T, double* sums, void* workspace,
                     void* stream);
ValueLossStats valueLossFinish(const double* sums, const ValueLossOptions& options);

}  // namespace treeward
