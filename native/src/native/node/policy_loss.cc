#include "kernels/policy_loss/policy_loss.h"

#include <memory>

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"
#include "node/outputs.h"

namespace treeward::node {
namespace {

PolicyLossOptions readOptions(const Napi::Object& from) {
  PolicyLossOptions o;
  o.clipLow = number(from, "clipLow");
  o.clipHigh = number(from, "clipHigh");
  o.truncation = number(from, "truncation");
  o.normaliser = number(from, "normaliser");
  o.objective = static_cast<PolicyObjective>(choice(from, "objective", {"ppo", "cispo", "gspo"}));
  o.dualClip = numberOr(from, "dualClip", o.dualClip);
  o.importance = static_cast<ImportanceMode>(choice(from, "importance", {"truncate", "mask"}));
  o.importanceLow = numberOr(from, "importanceLow", o.importanceLow);
  o.kl = static_cast<KlEstimator>(choice(from, "kl", {"none", "k1", "k2", "k3"}));
  o.klCoef = numberOr(from, "klCoef", o.klCoef);
  o.klMax = numberOr(from, "klMax", o.klMax);
  o.entropyCoef = numberOr(from, "entropyCoef", o.entropyCoef);
  o.logRatioMax = numberOr(from, "logRatioMax", o.logRatioMax);
  return o;
}

}  // namespace

Napi::Value policyLoss(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const Napi::Object given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);

  const char* names[] = {"logp_T", "logpOld_T", "logpRollout_T", "advantages_T", "mask_T"};
  Napi::Value values[5];
  for (int i = 0; i < 5; ++i) values[i] = inputs.Get(names[i]);
  const Napi::Value ref = inputs.Get("logpRef_T"), entropy = inputs.Get("entropy_T"), offset = inputs.Get("sequenceOffset_S1");
  const Napi::Value into = intended(info, "gradLogp_T");
  const PolicyLossOptions options = readOptions(given);

  View<float> arrays[5];
  for (int i = 0; i < 5; ++i) arrays[i] = float32(values[i], names[i]);
  const View<float> ref_T = optionalFloat32(ref, "logpRef_T"), entropy_T = optionalFloat32(entropy, "entropy_T");
  const View<std::int32_t> offset_S1 = optionalInt32(offset, "sequenceOffset_S1");
  const std::size_t tokens = arrays[0].size;
  for (int i = 1; i < 5; ++i) requireLength(env, names[i], arrays[i].size, "logp_T", tokens);
  if (!ref.IsUndefined()) requireLength(env, "logpRef_T", ref_T.size, "logp_T", tokens);
  if (!entropy.IsUndefined()) requireLength(env, "entropy_T", entropy_T.size, "logp_T", tokens);
  if (!offset.IsUndefined() && offset_S1.size == 0) throw fail(env, "NATIVE_E_LENGTH", "sequenceOffset_S1 must have at least one value");

  const PolicyLossInput input{tokens,
                              arrays[0].data,
                              arrays[1].data,
                              arrays[2].data,
                              arrays[3].data,
                              arrays[4].data,
                              ref_T.data,
                              entropy_T.data,
                              offset_S1.size ? offset_S1.size - 1 : 0,
                              offset_S1.data};
  Napi::Float32Array grad_T =
      output(env, into, "gradLogp_T", tokens, {arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], ref_T, entropy_T, offset_S1});
  const auto stats = std::make_shared<PolicyLossStats>();
  Napi::Object out = Napi::Object::New(env);
  out.Set("gradLogp_T", grad_T);
  return run(env, out, [=, grad = grad_T.Data()] { return (onCuda ? policyLossCuda : policyLossCpu)(input, options, grad, stats.get()); }, [stats](Napi::Object result) {
    Napi::Object statistics = Napi::Object::New(result.Env());
    statistics.Set("approxKl", stats->approxKl);
    statistics.Set("clipfrac", stats->clipfrac);
    statistics.Set("dualClipfrac", stats->dualClipfrac);
    statistics.Set("ratioMax", stats->ratioMax);
    statistics.Set("ess", stats->ess);
    statistics.Set("truncatedFrac", stats->truncatedFrac);
    statistics.Set("rolloutKl", stats->rolloutKl);
    statistics.Set("refKl", stats->refKl);
    statistics.Set("entropy", stats->entropy);
    statistics.Set("tokens", static_cast<double>(stats->tokens));
    result.Set("loss", stats->loss);
    result.Set("stats", statistics);
  });
}

}  // namespace treeward::node
