#include "kernels/adamw/adamw.h"

#include <cstring>

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {

// (arrays, coefficients as one Float32Array, backend?). Results are written over param_N, m_N and v_N.
Napi::Value adamw(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const char* names[] = {"param_N", "grad_N", "m_N", "v_N"};
  Napi::Value values[4];
  for (int i = 0; i < 4; ++i) values[i] = inputs.Get(names[i]);
  const Napi::Value packed = given.Get("coefficients");
  View<float> arrays[4];
  for (int i = 0; i < 4; ++i) {
    arrays[i] = float32(values[i], names[i]);
    requireLength(env, names[i], arrays[i].size, names[0], arrays[0].size);
  }
  const View<float> numbers = float32(packed, "coefficients");
  requireLength(env, "coefficients", numbers.size, "an AdamW step", kAdamwCoefficients);
  AdamwCoefficients coefficients;
  std::memcpy(&coefficients, numbers.data, sizeof coefficients);
  const AdamwArrays a{arrays[0].size, arrays[0].data, arrays[1].data, arrays[2].data, arrays[3].data, arrays[0].data, arrays[2].data, arrays[3].data};
  return run(env, env.Undefined(), [=] { return (onCuda ? adamwCuda : adamwCpu)(a, coefficients); });
}

}  // namespace treeward::node
