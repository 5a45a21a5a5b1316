// y = silu(gate) * up, silu(z) = z / (1 + e^-z). The backward pass computes the sigmoid again: only gate and up are kept.
#pragma once
#include <cstddef>

#include "common/element_type.h"
#include "common/status.h"

namespace treeward {

struct SwigluInput {
  std::size_t count;
  ElementType type;  // of gate_N and up_N
  const void* gate_N;
  const void* up_N;
};

struct SwigluGradient {
  const float* gradY_N;
  float* gradGate_N;
  float* gradUp_N;
};

Status swigluCpu(const SwigluInput& input, float* y_N);
Status swigluCuda(const SwigluInput& input, float* y_N);
Status swigluBackwardCpu(const SwigluInput& input, const SwigluGradient& gradient);
Status swigluBackwardCuda(const SwigluInput& input, const SwigluGradient& gradient);

// Device pointers.
void swigluDevice(const SwigluInput& input, float* y_N, void* stream);
void swigluBackwardDevice(const SwigluInput& input, const SwigluGradient& gradient, void* stream);

}  // namespace treeward
