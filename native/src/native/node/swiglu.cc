#include "kernels/swiglu/swiglu.h"

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {
namespace {

SwigluInput read(Napi::Env env, const Napi::Value& gates, const Napi::Value& ups) {
  const Elements gate = elements(gates, "gate_N"), up = elements(ups, "up_N");
  requireSameType(env, "up_N", up, "gate_N", gate);
  requireLength(env, "up_N", up.size, "gate_N", gate.size);
  return {gate.size, gate.type, gate.data, up.data};
}

}  // namespace

Napi::Value swiglu(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const bool onCuda = wantsCuda(info);
  const Napi::Value gates = inputs.Get("gate_N"), ups = inputs.Get("up_N");
  const SwigluInput in = read(env, gates, ups);
  Napi::Float32Array y = Napi::Float32Array::New(env, in.count);
  return run(env, y, [=, to = y.Data()] { return (onCuda ? swigluCuda : swigluCpu)(in, to); });
}

Napi::Value swigluBackward(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const bool onCuda = wantsCuda(info);
  const Napi::Value gates = inputs.Get("gate_N"), ups = inputs.Get("up_N"), gradients = inputs.Get("gradY_N");
  const SwigluInput in = read(env, gates, ups);
  const View<float> gradY = float32(gradients, "gradY_N");
  requireLength(env, "gradY_N", gradY.size, "gate_N", in.count);
  Napi::Float32Array gradGate = Napi::Float32Array::New(env, in.count), gradUp = Napi::Float32Array::New(env, in.count);
  const SwigluGradient gradient{gradY.data, gradGate.Data(), gradUp.Data()};
  Napi::Object out = Napi::Object::New(env);
  out.Set("gradGate_N", gradGate);
  out.Set("gradUp_N", gradUp);
  return run(env, out, [=] { return (onCuda ? swigluBackwardCuda : swigluBackwardCpu)(in, gradient); });
}

}  // namespace treeward::node
