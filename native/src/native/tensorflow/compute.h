// What computes an operator once its arguments have the right shapes: c_api/compute.cc on the CPU, tensorflow_gpu/compute.cc on
// the call's device and stream. Each checks values first.
#pragma once
#include "kernels/adamw/adamw.h"
#include "kernels/linear_logprob/linear_logprob.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/tree_attention/tree_attention.h"
#include "tensorflow/call.h"

namespace treeward::tensorflow {

Status compute(Call& call, const TreeAttentionInput& input, const TreeAttentionOutput& output);
Status compute(Call& call, const TreeAttentionInput& input, const TreeAttentionGradient& gradient);
Status compute(Call& call, const LinearLogprobInput& input, const LinearLogprobOutput& output);
Status compute(Call& call, const LinearLogprobInput& input, const LinearLogprobGradient& gradient);
Status compute(Call& call, const RmsNormInput& input, const RmsNormOutput& output);
Status compute(Call& call, const RmsNormInput& input, const RmsNormGradient& gradient);
Status compute(Call& call, const RopeInput& input, float* y_THD);
Status compute(Call& call, const SwigluInput& input, float* y_N);
Status compute(Call& call, const SwigluInput& input, const SwigluGradient& gradient);
Status compute(Call& call, const AdamwArrays& arrays, const AdamwCoefficients& coefficients);

}  // namespace treeward::tensorflow
