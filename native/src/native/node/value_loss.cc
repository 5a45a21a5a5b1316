#include "kernels/value_loss/value_loss.h"

#include <memory>

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"
#include "node/outputs.h"

namespace treeward::node {

Napi::Value valueLoss(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const Napi::Object given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const char* names[] = {"values_T", "valuesOld_T", "targets_T", "mask_T"};
  Napi::Value values[4];
  for (int i = 0; i < 4; ++i) values[i] = inputs.Get(names[i]);
  const Napi::Value into = intended(info, "gradValues_T");
  const ValueLossOptions options{numberOr(given, "clip", INFINITY), number(given, "normaliser")};

  View<float> arrays[4];
  for (int i = 0; i < 4; ++i) arrays[i] = float32(values[i], names[i]);
  const std::size_t tokens = arrays[0].size;
  for (int i = 1; i < 4; ++i) requireLength(env, names[i], arrays[i].size, names[0], tokens);
  const ValueLossInput input{tokens, arrays[0].data, arrays[1].data, arrays[2].data, arrays[3].data};
  Napi::Float32Array grad_T = output(env, into, "gradValues_T", tokens, {arrays[0], arrays[1], arrays[2], arrays[3]});
  const auto stats = std::make_shared<ValueLossStats>();
  Napi::Object out = Napi::Object::New(env);
  out.Set("gradValues_T", grad_T);
  return run(env, out, [=, grad = grad_T.Data()] { return (onCuda ? valueLossCuda : valueLossCpu)(input, options, grad, stats.get()); }, [stats](Napi::Object result) {
    Napi::Object statistics = Napi::Object::New(result.Env());
    statistics.Set("clipfrac", stats->clipfrac);
    statistics.Set("explainedVariance", stats->explainedVariance);
    statistics.Set("tokens", static_cast<double>(stats->tokens));
    result.Set("loss", stats->loss);
    result.Set("stats", statistics);
  });
}

}  // namespace treeward::node
