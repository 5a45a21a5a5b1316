#include "kernels/value_loss/value_loss.h"

#include "node/arguments.h"
#include "node/operators.h"

namespace treeward::node {

Napi::Value valueLoss(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const Napi::Object given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const char* names[] = {"values_T", "valuesOld_T", "targets_T", "mask_T"};
  Napi::Value values[4];
  for (int i = 0; i < 4; ++i) values[i] = inputs.Get(names[i]);
  const ValueLossOptions options{numberOr(given, "clip", INFINITY), number(given, "normaliser")};

  View<float> arrays[4];
  for (int i = 0; i < 4; ++i) arrays[i] = float32(values[i], names[i]);
  const std::size_t tokens = arrays[0].size;
  for (int i = 1; i < 4; ++i) requireLength(env, names[i], arrays[i].size, names[0], tokens);
  const ValueLossInput input{tokens, arrays[0].data, arrays[1].data, arrays[2].data, arrays[3].data};
  Napi::Float32Array grad_T = Napi::Float32Array::New(env, tokens);
  ValueLossStats stats{};
  run(env, [&] { return (onCuda ? valueLossCuda : valueLossCpu)(input, options, grad_T.Data(), &stats); });

  Napi::Object out = Napi::Object::New(env);
  Napi::Object statistics = Napi::Object::New(env);
  statistics.Set("clipfrac", stats.clipfrac);
  statistics.Set("explainedVariance", stats.explainedVariance);
  statistics.Set("tokens", static_cast<double>(stats.tokens));
  out.Set("loss", stats.loss);
  out.Set("gradValues_T", grad_T);
  out.Set("stats", statistics);
  return out;
}

}  // namespace treeward::node
