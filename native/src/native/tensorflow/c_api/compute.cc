#include "tensorflow/compute.h"

namespace treeward::tensorflow {

Status compute(Call&, const TreeAttentionInput& in, const TreeAttentionOutput& out) { return treeAttentionCpu(in, out); }
Status compute(Call&, const TreeAttentionInput& in, const TreeAttentionGradient& g) { return treeAttentionBackwardCpu(in, g); }
Status compute(Call&, const LinearLogprobInput& in, const LinearLogprobOutput& out) { return linearLogprobCpu(in, out); }
Status compute(Call&, const LinearLogprobInput& in, const LinearLogprobGradient& g) { return linearLogprobBackwardCpu(in, g); }
Status compute(Call&, const RmsNormInput& in, const RmsNormOutput& out) { return rmsNormCpu(in, out); }
Status compute(Call&, const RmsNormInput& in, const RmsNormGradient& g) { return rmsNormBackwardCpu(in, g); }
Status compute(Call&, const RopeInput& in, float* y_THD) { return ropeCpu(in, y_THD); }
Status compute(Call&, const SwigluInput& in, float* y_N) { return swigluCpu(in, y_N); }
Status compute(Call&, const SwigluInput& in, const SwigluGradient& g) { return swigluBackwardCpu(in, g); }
Status compute(Call&, const AdamwArrays& arrays, const AdamwCoefficients& coefficients) { return adamwCpu(arrays, coefficients); }

}  // namespace treeward::tensorflow
