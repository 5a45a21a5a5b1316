#include "kernels/rms_norm/rms_norm.h"

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {
namespace {

// The input without its addend. `x` is the first pointer that is taken.
RmsNormInput read(Napi::Env env, const Napi::Value& values, const Napi::Value& gains, std::size_t width, double eps) {
  const Elements x = elements(values, "x_RD");
  const View<float> gain = optionalFloat32(gains, "gain_GD");
  if (x.size % width != 0) throw fail(env, "NATIVE_E_LENGTH", "x_RD must have rows of width values");
  const bool given = !gains.IsUndefined();
  if (given && (gain.size == 0 || gain.size % width != 0)) throw fail(env, "NATIVE_E_LENGTH", "gain_GD must have rows of width values");
  return {x.size / width, width, given ? gain.size / width : 1, x.type, x.data, nullptr, given ? gain.data : nullptr, static_cast<float>(eps)};
}

}  // namespace

Napi::Value rmsNorm(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const std::size_t width = count(given, "width");
  const double eps = numberOr(given, "eps", 1e-6);
  const Napi::Value values = inputs.Get("x_RD"), gains = inputs.Get("gain_GD"), addends = inputs.Get("addend_RD");
  RmsNormInput in = read(env, values, gains, width, eps);
  const View<float> addend = optionalFloat32(addends, "addend_RD");
  const std::size_t n = in.rows * width;
  const bool adds = !addends.IsUndefined();
  if (adds) requireLength(env, "addend_RD", addend.size, "x_RD", n);
  in.addend_RD = adds && n ? addend.data : nullptr;
  Napi::Float32Array y = Napi::Float32Array::New(env, n), scale = Napi::Float32Array::New(env, in.rows), sum = Napi::Float32Array::New(env, adds ? n : 0);
  const RmsNormOutput output{in.addend_RD ? sum.Data() : nullptr, y.Data(), scale.Data()};
  Napi::Object out = Napi::Object::New(env);
  out.Set("y_RD", y);
  out.Set("scale_R", scale);
  if (adds) out.Set("sum_RD", sum);
  return run(env, out, [=] { return (onCuda ? rmsNormCuda : rmsNormCpu)(in, output); });
}

Napi::Value rmsNormBackward(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const std::size_t width = count(given, "width");
  const double eps = numberOr(given, "eps", 1e-6);
  const Napi::Value values = inputs.Get("x_RD"), units = inputs.Get("unit_RD"), gains = inputs.Get("gain_GD"), scales = inputs.Get("scale_R"),
                    gradients = inputs.Get("gradY_RD"), addends = inputs.Get("addend_RD");
  const bool normalised = values.IsUndefined();
  if (normalised == units.IsUndefined()) throw fail(env, "NATIVE_E_OPTION", "either x_RD or unit_RD must be given");
  const RmsNormInput in = read(env, normalised ? units : values, gains, width, eps);
  const View<float> scale = float32(scales, "scale_R"), gradY = float32(gradients, "gradY_RD"), addend = optionalFloat32(addends, "addend_RD");
  const std::size_t n = in.rows * width, columns = in.gain_GD ? in.gains * width : 0;
  requireLength(env, "scale_R", scale.size, "the rows of x_RD", in.rows);
  requireLength(env, "gradY_RD", gradY.size, "x_RD", n);
  const bool adds = !addends.IsUndefined();
  if (adds) requireLength(env, "addend_RD", addend.size, "x_RD", n);
  Napi::Float32Array gradX = Napi::Float32Array::New(env, n), gradGain = Napi::Float32Array::New(env, columns);
  const RmsNormGradient gradient{scale.data, gradY.data, adds && n ? addend.data : nullptr, normalised, gradX.Data(), columns ? gradGain.Data() : nullptr};
  Napi::Object out = Napi::Object::New(env);
  out.Set("gradX_RD", gradX);
  if (columns) out.Set("gradGain_GD", gradGain);
  return run(env, out, [=] { return (onCuda ? rmsNormBackwardCuda : rmsNormBackwardCpu)(in, gradient); });
}

}  // namespace treeward::node
