// The formula for one value, shared by the backends.
#pragma once
#include <cmath>

#include "common/inline.h"
#include "kernels/adamw/adamw.h"

namespace treeward {

struct AdamwValue {
  float param, m, v;
};

TREEWARD_HD AdamwValue adamwValue(float param, float grad, float m, float v, const AdamwCoefficients& c) {
  const float g = grad * c.gradScale;
  AdamwValue r;
  r.m = c.beta1 * m + c.oneMinusBeta1 * g;
  r.v = c.beta2 * v + c.oneMinusBeta2 * g * g;
  r.param = c.decay * param - c.stepSize * r.m / (c.rootScale * sqrtf(r.v) + c.eps);
  return r;
}

}  // namespace treeward
