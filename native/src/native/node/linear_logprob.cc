#include "kernels/linear_logprob/linear_logprob.h"

#include <memory>
#include <vector>

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {
namespace {

// The properties both directions read, taken before any pointer is.
struct Properties {
  Napi::Value hidden, weight, bias, chosen, temperatures;
  std::size_t hiddenSize;
  double temperature;

  Properties(const Napi::Object& inputs, const Napi::Object& options)
      : hidden(inputs.Get("hidden_TD")),
        weight(inputs.Get("weight_VD")),
        bias(inputs.Get("bias_V")),
        chosen(inputs.Get("chosen_T")),
        temperatures(inputs.Get("temperature_T")),
        hiddenSize(count(options, "hiddenSize")),
        temperature(numberOr(options, "temperature", 1.0)) {}
};

// Shared with the implementation, which reads the temperatures computed here.
struct Arguments {
  LinearLogprobInput input;
  std::vector<float> inverseTemperature_T;

  Arguments(Napi::Env env, const Properties& p) {
    const Elements hidden = elements(p.hidden, "hidden_TD"), weight = elements(p.weight, "weight_VD");
    const View<float> bias = optionalFloat32(p.bias, "bias_V"), temperatures = optionalFloat32(p.temperatures, "temperature_T");
    const View<std::int32_t> chosen = int32(p.chosen, "chosen_T");
    requireSameType(env, "weight_VD", weight, "hidden_TD", hidden);
    const std::size_t tokens = chosen.size, size = p.hiddenSize;
    if (hidden.size != tokens * size) {
      throw fail(env, "NATIVE_E_LENGTH", "hidden_TD has " + std::to_string(hidden.size) + " values, chosen_T and hiddenSize ask for " + std::to_string(tokens * size));
    }
    if (weight.size % size != 0) throw fail(env, "NATIVE_E_LENGTH", "weight_VD must have rows of hiddenSize values");
    const std::size_t vocabulary = weight.size / size;
    if (!p.bias.IsUndefined()) requireLength(env, "bias_V", bias.size, "the vocabulary of weight_VD", vocabulary);
    if (!p.temperatures.IsUndefined()) requireLength(env, "temperature_T", temperatures.size, "chosen_T", tokens);
    inverseTemperature_T.resize(tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
      inverseTemperature_T[t] = static_cast<float>(1.0 / (p.temperature * (temperatures.data ? static_cast<double>(temperatures.data[t]) : 1.0)));
    }
    input = {tokens, size, vocabulary, hidden.type, hidden.data, weight.data, bias.data, chosen.data, inverseTemperature_T.data()};
  }
};

}  // namespace

Napi::Value linearLogprob(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const Properties properties(inputs, given);
  const auto arguments = std::make_shared<const Arguments>(env, properties);
  const std::size_t tokens = arguments->input.tokens;
  Napi::Float32Array logp_T = Napi::Float32Array::New(env, tokens), entropy_T = Napi::Float32Array::New(env, tokens), lse_T = Napi::Float32Array::New(env, tokens);
  const LinearLogprobOutput output{logp_T.Data(), entropy_T.Data(), lse_T.Data()};
  Napi::Object out = Napi::Object::New(env);
  out.Set("logp_T", logp_T);
  out.Set("entropy_T", entropy_T);
  out.Set("lse_T", lse_T);
  return run(env, out, [=] { return (onCuda ? linearLogprobCuda : linearLogprobCpu)(arguments->input, output); });
}

Napi::Value linearLogprobBackward(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const Properties properties(inputs, given);
  const char* names[] = {"gradLogp_T", "gradEntropy_T", "lse_T", "entropy_T"};
  Napi::Value values[4];
  for (int i = 0; i < 4; ++i) values[i] = inputs.Get(names[i]);
  const auto arguments = std::make_shared<const Arguments>(env, properties);
  const LinearLogprobInput& in = arguments->input;
  View<float> arrays[4];
  for (int i = 0; i < 4; ++i) {
    arrays[i] = float32(values[i], names[i]);
    requireLength(env, names[i], arrays[i].size, "chosen_T", in.tokens);
  }
  Napi::Float32Array gradHidden = Napi::Float32Array::New(env, in.tokens * in.hidden), gradWeight = Napi::Float32Array::New(env, in.vocabulary * in.hidden);
  const LinearLogprobGradient gradient{arrays[0].data, arrays[1].data, arrays[2].data, arrays[3].data, gradHidden.Data(), gradWeight.Data()};
  Napi::Object out = Napi::Object::New(env);
  out.Set("gradHidden_TD", gradHidden);
  out.Set("gradWeight_VD", gradWeight);
  return run(env, out, [=] { return (onCuda ? linearLogprobBackwardCuda : linearLogprobBackwardCpu)(arguments->input, gradient); });
}

}  // namespace treeward::node
