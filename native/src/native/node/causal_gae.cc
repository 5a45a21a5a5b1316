#include "kernels/causal_gae/causal_gae.h"

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"
#include "node/outputs.h"

namespace treeward::node {

Napi::Value causalGae(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const Napi::Object given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const char* intNames[] = {"callOffset_R1", "tokenOffset_C1", "successorOffset_C1", "successor_L"};
  const char* floatNames[] = {"values_T", "weight_L", "reward_C"};
  Napi::Value intValues[4], floatValues[3];
  for (int i = 0; i < 4; ++i) intValues[i] = inputs.Get(intNames[i]);
  for (int i = 0; i < 3; ++i) floatValues[i] = inputs.Get(floatNames[i]);
  const Napi::Value intoAdvantages = intended(info, "advantages_T"), intoTargets = intended(info, "targets_T");
  const CausalGaeOptions options{number(given, "gamma"), number(given, "lambda")};

  View<std::int32_t> ints[4];
  View<float> floats[3];
  for (int i = 0; i < 4; ++i) ints[i] = int32(intValues[i], intNames[i]);
  for (int i = 0; i < 3; ++i) floats[i] = float32(floatValues[i], floatNames[i]);
  if (ints[0].size == 0) throw fail(env, "NATIVE_E_LENGTH", "callOffset_R1 must have at least one value");
  const std::size_t calls = floats[2].size, tokens = floats[0].size;
  for (int i = 1; i < 3; ++i) {
    if (ints[i].size == calls + 1) continue;
    throw fail(env, "NATIVE_E_LENGTH", std::string(intNames[i]) + " has " + std::to_string(ints[i].size) + " values, reward_C has " +
                                           std::to_string(calls) + ": must be one more");
  }
  requireLength(env, "weight_L", floats[1].size, "successor_L", ints[3].size);
  const CausalGaeInput input{ints[0].size - 1, calls,        tokens,       ints[3].size,   floats[0].data, ints[0].data,
                             ints[1].data,     ints[2].data, ints[3].data, floats[1].data, floats[2].data};
  Napi::Float32Array advantages_T =
      output(env, intoAdvantages, "advantages_T", tokens, {ints[0], ints[1], ints[2], ints[3], floats[0], floats[1], floats[2]});
  const View<float> advantages{advantages_T.Data(), tokens};
  Napi::Float32Array targets_T =
      output(env, intoTargets, "targets_T", tokens, {advantages, ints[0], ints[1], ints[2], ints[3], floats[0], floats[1], floats[2]});
  Napi::Object out = Napi::Object::New(env);
  out.Set("advantages_T", advantages_T);
  out.Set("targets_T", targets_T);
  return run(env, out, [=, advantages = advantages_T.Data(), targets = targets_T.Data()] { return (onCuda ? causalGaeCuda : causalGaeCpu)(input, options, advantages, targets); });
}

}  // namespace treeward::node
