// The only file that knows both Node-API and the kernels. It checks types and lengths before any pointer is used, so that
// no argument from JavaScript can crash the process; every refusal is a JavaScript error with a `code`.
#include <napi.h>

#include <cmath>
#include <string>

#include "kernels/policy_loss/policy_loss.h"

namespace {

// Raised whenever the JavaScript side has to change with this file. `load-binding.ts` refuses another number.
constexpr int kInterfaceVersion = 1;

Napi::Error fail(Napi::Env env, const char* code, const std::string& message) {
  Napi::Error error = Napi::TypeError::New(env, message);
  error.Set("code", Napi::String::New(env, code));
  return error;
}

Napi::Float32Array float32(const Napi::Value& value, const char* name) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
    throw fail(value.Env(), "NATIVE_E_TYPE", std::string(name) + " must be a Float32Array");
  }
  return value.As<Napi::Float32Array>();
}

double number(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsNumber()) throw fail(from.Env(), "NATIVE_E_OPTION", std::string(name) + " must be a number");
  return value.As<Napi::Number>().DoubleValue();
}

void require(Napi::Env env, bool holds, const char* name, const char* rule, double got) {
  if (holds) return;
  throw fail(env, "NATIVE_E_OPTION", std::string(name) + " must be " + rule + ", got " + std::to_string(got));
}

const char* faultName(treeward::PolicyLossFault fault) {
  switch (fault) {
    case treeward::PolicyLossFault::logp: return "logp_T";
    case treeward::PolicyLossFault::logpOld: return "logpOld_T";
    case treeward::PolicyLossFault::logpRollout: return "logpRollout_T";
    case treeward::PolicyLossFault::advantages: return "advantages_T";
    case treeward::PolicyLossFault::mask: return "mask_T";
    case treeward::PolicyLossFault::none: break;
  }
  return "?";
}

Napi::Object object(const Napi::CallbackInfo& info, std::size_t index, const char* what) {
  if (info.Length() <= index || !info[index].IsObject()) {
    throw fail(info.Env(), "NATIVE_E_TYPE", std::string(what) + " must be an object");
  }
  return info[index].As<Napi::Object>();
}

Napi::Value policyLoss(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const Napi::Object given = object(info, 1, "options");

  const char* names[] = {"logp_T", "logpOld_T", "logpRollout_T", "advantages_T", "mask_T"};
  Napi::Value values[5];
  for (int i = 0; i < 5; ++i) values[i] = inputs.Get(names[i]);

  treeward::PolicyLossOptions options;
  options.clipLow = number(given, "clipLow");
  options.clipHigh = number(given, "clipHigh");
  options.truncation = number(given, "truncation");
  options.normaliser = number(given, "normaliser");
  require(env, options.clipLow >= 0.0 && options.clipLow <= 1.0, "clipLow", "in [0, 1]", options.clipLow);
  require(env, options.clipHigh >= 0.0 && std::isfinite(options.clipHigh), "clipHigh", "finite and >= 0", options.clipHigh);
  require(env, options.truncation > 0.0, "truncation", "> 0 (Infinity = none)", options.truncation);
  require(env, options.normaliser > 0.0 && std::isfinite(options.normaliser), "normaliser", "finite and > 0",
          options.normaliser);

  // After the last property read: a getter could detach a buffer whose address was taken before it ran.
  Napi::Float32Array arrays[5];
  for (int i = 0; i < 5; ++i) arrays[i] = float32(values[i], names[i]);
  const std::size_t tokens = arrays[0].ElementLength();
  for (int i = 1; i < 5; ++i) {
    if (arrays[i].ElementLength() == tokens) continue;
    throw fail(env, "NATIVE_E_LENGTH",
               std::string(names[i]) + " has " + std::to_string(arrays[i].ElementLength()) + " values, logp_T has " +
                   std::to_string(tokens));
  }
  const treeward::PolicyLossInput input{tokens,           arrays[0].Data(), arrays[1].Data(),
                                        arrays[2].Data(), arrays[3].Data(), arrays[4].Data()};
  Napi::Float32Array grad_T = Napi::Float32Array::New(env, tokens);
  treeward::PolicyLossStats stats{};
  const treeward::PolicyLossStatus status = treeward::policyLossCpu(input, options, grad_T.Data(), &stats);
  if (status.fault != treeward::PolicyLossFault::none) {
    const char* rule = status.fault == treeward::PolicyLossFault::mask ? " must be finite and >= 0"
                                                                       : " must be finite where mask_T is not 0";
    throw fail(env, "NATIVE_E_VALUE", std::string(faultName(status.fault)) + "[" + std::to_string(status.index) + "]" + rule);
  }

  Napi::Object out = Napi::Object::New(env);
  Napi::Object statistics = Napi::Object::New(env);
  statistics.Set("approxKl", stats.approxKl);
  statistics.Set("clipfrac", stats.clipfrac);
  statistics.Set("ratioMax", stats.ratioMax);
  statistics.Set("ess", stats.ess);
  statistics.Set("truncatedFrac", stats.truncatedFrac);
  statistics.Set("rolloutKl", stats.rolloutKl);
  statistics.Set("tokens", static_cast<double>(stats.tokens));
  out.Set("loss", stats.loss);
  out.Set("gradLogp_T", grad_T);
  out.Set("stats", statistics);
  return out;
}

Napi::Value buildInfo(const Napi::CallbackInfo& info) {
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("compiler", __VERSION__);
  out.Set("napi", NAPI_VERSION);
  return out;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("interfaceVersion", kInterfaceVersion);
  exports.Set("buildInfo", Napi::Function::New(env, buildInfo, "buildInfo"));
  exports.Set("policyLoss", Napi::Function::New(env, policyLoss, "policyLoss"));
  return exports;
}

}  // namespace

NODE_API_MODULE(treeward, init)
