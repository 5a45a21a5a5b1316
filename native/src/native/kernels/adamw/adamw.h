// One AdamW step of a flat array (decoupled decay, bias-corrected), in one pass:
//   g = gradScale * grad,   m' = beta1 m + (1 - beta1) g,   v' = beta2 v + (1 - beta2) g^2
//   p' = decay p - stepSize m' / (rootScale sqrt(v') + eps)
#pragma once
#include <cstddef>

#include "common/status.h"

namespace treeward {

// The caller computes these in float64 and rounds each once, as 1 - beta must not be taken of a rounded beta.
struct AdamwCoefficients {
  float beta1, oneMinusBeta1, beta2, oneMinusBeta2;
  float stepSize;   // lr / (1 - beta1^step)
  float rootScale;  // 1 / sqrt(1 - beta2^step)
  float eps;
  float decay;      // 1 - lr * weightDecay
  float gradScale;  // 1, or what the global norm is clipped by
};
constexpr std::size_t kAdamwCoefficients = sizeof(AdamwCoefficients) / sizeof(float);

// Results may lie over the inputs of the same name.
struct AdamwArrays {
  std::size_t count;
  const float *param_N, *grad_N, *m_N, *v_N;
  float *newParam_N, *newM_N, *newV_N;
};

Status checkAdamw(const AdamwCoefficients& coefficients);

Status adamwCpu(const AdamwArrays& arrays, const AdamwCoefficients& coefficients);
Status adamwCuda(const AdamwArrays& arrays, const AdamwCoefficients& coefficients);

// Device pointers, unchecked.
void adamwDevice(const AdamwArrays& arrays, const AdamwCoefficients& coefficients, void* stream);

}  // namespace treeward
