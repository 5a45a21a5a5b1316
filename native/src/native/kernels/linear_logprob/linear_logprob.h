// Log-probability of a chosen token and entropy from hidden states and vocabulary weights, without the T x V logits:
//   z_v = (hidden . weight_v + bias_v) / temperature,   logp = z_chosen - lse(z),   entropy = lse(z) - sum_v p_v z_v
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/element_type.h"
#include "common/status.h"

namespace treeward {

// T tokens (only those that count: the caller gathers their rows), D hidden size, V vocabulary.
struct LinearLogprobInput {
  std::size_t tokens, hidden, vocabulary;
  ElementType type;  // of hidden_TD and weight_VD
  const void* hidden_TD;
  const void* weight_VD;
  const float* bias_V;         // may be null; -infinity rules a token out
  const std::int32_t* chosen_T;
  const float* inverseTemperature_T;
};

struct LinearLogprobOutput {
  float* logp_T;
  float* entropy_T;
  float* lse_T;  // for the backward pass
};

struct LinearLogprobGradient {
  const float* gradLogp_T;
  const float* gradEntropy_T;
  const float* lse_T;      // of the forward pass
  const float* entropy_T;  // of the forward pass
  float* gradHidden_TD;
  float* gradWeight_VD;
};

Status checkLinearLogprob(const LinearLogprobInput& input);

Status linearLogprobCpu(const LinearLogprobInput& input, const LinearLogprobOutput& output);
Status linearLogprobCuda(const LinearLogprobInput& input, const LinearLogprobOutput& output);
Status linearLogprobBackwardCpu(const LinearLogprobInput& input, const LinearLogprobGradient& gradient);
Status linearLogprobBackwardCuda(const LinearLogprobInput& input, const LinearLogprobGradient& gradient);

// Device pointers, unchecked. Workspaces in bytes.
std::size_t linearLogprobWorkspace(const LinearLogprobInput& input);
void linearLogprobDevice(const LinearLogprobInput& input, const LinearLogprobOutput& output, void* workspace, void* stream);
std::size_t linearLogprobBackwardWorkspace(const LinearLogprobInput& input);
void linearLogprobBackwardDevice(const LinearLogprobInput& input, const LinearLogprobGradient& gradient, void* workspace, void* stream);

}  // namespace treeward
