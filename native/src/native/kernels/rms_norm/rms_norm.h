// Root mean square norm over rows, with an optional sum before it:
//   s = x + addend,   scale = 1 / sqrt(mean_d(s^2) + eps),   y = s * scale * gain
#pragma once
#include <cstddef>

#include "common/element_type.h"
#include "common/status.h"

namespace treeward {

// R rows of D. G gains: row r has gain r % G, so that heads next to each other can have gains of their own.
struct RmsNormInput {
  std::size_t rows, width, gains;
  ElementType type;  // of x_RD
  const void* x_RD;
  const float* addend_RD;  // may be null
  const float* gain_GD;    // null = 1; `gains` is 1 then
  float eps;
};

struct RmsNormOutput {
  float* sum_RD;  // x + addend; null iff there is no addend
  float* y_RD;
  float* scale_R;  // for the backward pass
};

struct RmsNormGradient {
  const float* scale_R;  // of the forward pass
  const float* gradY_RD;
  const float* addend_RD;  // added to the gradient of x (a residual path's); may be null
  // Whether x_RD of the input is already multiplied by the scale: callers that keep y (without gain) need not keep x.
  bool normalised;
  float* gradX_RD;
  float* gradGain_GD;  // null iff there is no gain
};

Status checkRmsNorm(const RmsNormInput& input);

Status rmsNormCpu(const RmsNormInput& input, const RmsNormOutput& output);
Status rmsNormCuda(const RmsNormInput& input, const RmsNormOutput& output);
// The input's addend is not read: x_RD is the sum (or the normalised sum).
Status rmsNormBackwardCpu(const RmsNormInput& input, const RmsNormGradient& gradient);
Status rmsNormBackwardCuda(const RmsNormInput& input, const RmsNormGradient& gradient);

// Device pointers, unchecked. Workspace of the backward pass in bytes.
void rmsNormDevice(const RmsNormInput& input, const RmsNormOutput& output, void* stream);
std::size_t rmsNormBackwardWorkspace(const RmsNormInput& input);
void rmsNormBackwardDevice(const RmsNormInput& input, const RmsNormGradient& gradient, void* workspace, void* stream);

}  // namespace treeward
