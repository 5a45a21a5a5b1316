// Stands in for the CUDA implementations in a build without a CUDA compiler. `deviceInfo` says there is no device, so that
// nothing else here is ever called.
#include "cuda/device_info.h"
#include "kernels/adamw/adamw.h"
#include "kernels/causal_gae/causal_gae.h"
#include "kernels/linear_logprob/linear_logprob.h"
#include "kernels/policy_loss/policy_loss.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/tree_attention/tree_attention.h"
#include "kernels/value_loss/value_loss.h"

namespace treeward {
namespace {
constexpr Status kNone{Fault::option, "backend", 0, "cuda is not in this build"};
}

const cuda::DeviceInfo& cuda::deviceInfo() {
  static const DeviceInfo info{false, "this addon was built without a CUDA compiler", "", "", 0, 0, 0, 0};
  return info;
}

Status policyLossCuda(const PolicyLossInput&, const PolicyLossOptions&, float*, PolicyLossStats*) { return kNone; }
Status valueLossCuda(const ValueLossInput&, const ValueLossOptions&, float*, ValueLossStats*) { return kNone; }
Status causalGaeCuda(const CausalGaeInput&, const CausalGaeOptions&, float*, float*) { return kNone; }
Status linearLogprobCuda(const LinearLogprobInput&, const LinearLogprobOutput&) { return kNone; }
Status linearLogprobBackwardCuda(const LinearLogprobInput&, const LinearLogprobGradient&) { return kNone; }
Status treeAttentionCuda(const TreeAttentionInput&, const TreeAttentionOutput&) { return kNone; }
Status treeAttentionBackwardCuda(const TreeAttentionInput&, const TreeAttentionGradient&) { return kNone; }
Status rmsNormCuda(const RmsNormInput&, const RmsNormOutput&) { return kNone; }
Status rmsNormBackwardCuda(const RmsNormInput&, const RmsNormGradient&) { return kNone; }
Status ropeCuda(const RopeInput&, float*) { return kNone; }
Status swigluCuda(const SwigluInput&, float*) { return kNone; }
Status swigluBackwardCuda(const SwigluInput&, const SwigluGradient&) { return kNone; }
Status adamwCuda(const AdamwArrays&, const AdamwCoefficients&) { return kNone; }

}  // namespace treeward
