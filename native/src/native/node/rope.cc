#include "kernels/rope/rope.h"

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {

Napi::Value rope(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const std::size_t heads = count(given, "heads"), dim = count(given, "dim"), frequencies = count(given, "frequencies");
  const auto pairs = static_cast<RopePairs>(choice(given, "pairs", {"half", "interleaved"}));
  const bool inverse = choice(given, "direction", {"forward", "inverse"}) == 1;
  const Napi::Value values = inputs.Get("x_THD"), positions = inputs.Get("position_T"), cosines = inputs.Get("cos_PF"), sines = inputs.Get("sin_PF");
  const Elements x = elements(values, "x_THD");
  const View<std::int32_t> position = int32(positions, "position_T");
  const View<float> cos = float32(cosines, "cos_PF"), sin = float32(sines, "sin_PF");
  const std::size_t row = heads * dim;
  if (x.size % row != 0 || x.size / row != position.size) throw fail(env, "NATIVE_E_LENGTH", "x_THD must have heads times dim values for each of position_T");
  if (cos.size % frequencies != 0) throw fail(env, "NATIVE_E_LENGTH", "cos_PF must have rows of frequencies values");
  requireLength(env, "sin_PF", sin.size, "cos_PF", cos.size);
  const RopeInput in{position.size, heads, dim, frequencies, cos.size / frequencies, pairs, inverse, x.type, x.data, position.data, cos.data, sin.data};
  Napi::Float32Array y = Napi::Float32Array::New(env, x.size);
  return run(env, y, [=, to = y.Data()] { return (onCuda ? ropeCuda : ropeCpu)(in, to); });
}

}  // namespace treeward::node
