#include "common/parallel.h"
#include "common/target.h"
#include "kernels/adamw/adamw_value.h"

namespace treeward {
namespace {

constexpr std::size_t kGrain = 1 << 15;  // values worth a thread

// Results may lie over inputs, but only index by index: `ivdep` says so, no copy of the loop without vectors is needed.
TREEWARD_VECTOR_CLONES void step(const AdamwArrays& a, const AdamwCoefficients& given, std::size_t from, std::size_t to) {
  const AdamwCoefficients c = given;
  const float *param = a.param_N, *grad = a.grad_N, *m = a.m_N, *v = a.v_N;
  float *newParam = a.newParam_N, *newM = a.newM_N, *newV = a.newV_N;
#pragma GCC ivdep
  for (std::size_t i = from; i < to; ++i) {
    const AdamwValue r = adamwValue(param[i], grad[i], m[i], v[i], c);
    newParam[i] = r.param;
    newM[i] = r.m;
    newV[i] = r.v;
  }
}

}  // namespace

Status checkAdamw(const AdamwCoefficients& c) {
  struct Field {
    const char* name;
    float value;
  };
  const Field fields[] = {{"beta1", c.beta1}, {"beta2", c.beta2}, {"lr", c.stepSize}, {"step", c.rootScale}, {"eps", c.eps}, {"weightDecay", c.decay}, {"gradScale", c.gradScale}};
  for (const Field& f : fields) {
    if (!(std::fabs(f.value) < INFINITY)) return {Fault::option, f.name, 0, "must be finite"};
  }
  if (!(c.beta1 >= 0.0f && c.beta1 < 1.0f)) return {Fault::option, "beta1", 0, "must be in [0, 1)"};
  if (!(c.beta2 >= 0.0f && c.beta2 < 1.0f)) return {Fault::option, "beta2", 0, "must be in [0, 1)"};
  if (!(c.eps >= 0.0f)) return {Fault::option, "eps", 0, "must be >= 0"};
  return {};
}

Status adamwCpu(const AdamwArrays& a, const AdamwCoefficients& c) {
  if (const Status status = checkAdamw(c); !status.ok()) return status;
  parallelFor(a.count, kGrain, [&](std::size_t from, std::size_t to) { step(a, c, from, to); });
  return {};
}

}  // namespace treeward
