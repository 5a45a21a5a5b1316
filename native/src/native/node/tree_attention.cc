#include "kernels/tree_attention/tree_attention.h"

#include <cmath>

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {
namespace {

constexpr const char* kOperands[] = {"query_QHD", "key_KJD", "value_KJD"};
constexpr const char* kVisibility[] = {"position_Q", "end_K", "start_Q", "finish_K", "firstKey_Q", "lastKey_Q"};

// The properties both directions read, taken before any pointer is.
struct Properties {
  Napi::Value operands[3], visibility[6];
  std::size_t heads, keyHeads, dim;
  double scale;

  Properties(const Napi::Object& inputs, const Napi::Object& options)
      : heads(count(options, "heads")), keyHeads(count(options, "keyHeads")), dim(count(options, "dim")), scale(numberOr(options, "scale", 1.0 / std::sqrt(static_cast<double>(dim)))) {
    for (int i = 0; i < 3; ++i) operands[i] = inputs.Get(kOperands[i]);
    for (int i = 0; i < 6; ++i) visibility[i] = inputs.Get(kVisibility[i]);
  }
};

TreeAttentionInput read(Napi::Env env, const Properties& p) {
  Elements x[3];
  View<std::int32_t> v[6];
  for (int i = 0; i < 3; ++i) x[i] = elements(p.operands[i], kOperands[i]);
  for (int i = 0; i < 6; ++i) v[i] = i < 2 ? int32(p.visibility[i], kVisibility[i]) : optionalInt32(p.visibility[i], kVisibility[i]);
  const std::size_t queries = v[0].size, keys = v[1].size;
  const auto length = [&](const char* name, std::size_t got, std::size_t want) {
    if (got != want) throw fail(env, "NATIVE_E_LENGTH", std::string(name) + " has " + std::to_string(got) + " values, must have " + std::to_string(want));
  };
  length("query_QHD", x[0].size, queries * p.heads * p.dim);
  length("key_KJD", x[1].size, keys * p.keyHeads * p.dim);
  length("value_KJD", x[2].size, keys * p.keyHeads * p.dim);
  requireSameType(env, "key_KJD", x[1], "query_QHD", x[0]);
  requireSameType(env, "value_KJD", x[2], "query_QHD", x[0]);
  // An empty array has no address either: given is what counts.
  int history = 0;
  for (int i = 2; i < 6; ++i) history += !p.visibility[i].IsUndefined();
  if (history != 0 && history != 4) throw fail(env, "NATIVE_E_OPTION", "start_Q, finish_K, firstKey_Q and lastKey_Q come together");
  for (int i = 2; history && i < 6; ++i) length(kVisibility[i], v[i].size, i == 3 ? keys : queries);
  return {queries,   keys,      p.heads,   p.keyHeads,
          p.dim,     x[0].type, x[0].data, x[1].data,
          x[2].data, {v[0].data, v[1].data, v[2].data, v[3].data, v[4].data, v[5].data}, static_cast<float>(p.scale)};
}

}  // namespace

Napi::Value treeAttention(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const Properties properties(inputs, given);
  const TreeAttentionInput in = read(env, properties);
  Napi::Float32Array output = Napi::Float32Array::New(env, in.queries * in.heads * in.dim), lse = Napi::Float32Array::New(env, in.queries * in.heads);
  const TreeAttentionOutput results{output.Data(), lse.Data()};
  Napi::Object out = Napi::Object::New(env);
  out.Set("output_QHD", output);
  out.Set("lse_QH", lse);
  return run(env, out, [=] { return (onCuda ? treeAttentionCuda : treeAttentionCpu)(in, results); });
}

Napi::Value treeAttentionBackward(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const bool onCuda = wantsCuda(info);
  const Properties properties(inputs, given);
  const char* names[] = {"output_QHD", "lse_QH", "gradOutput_QHD"};
  Napi::Value values[3];
  for (int i = 0; i < 3; ++i) values[i] = inputs.Get(names[i]);
  const TreeAttentionInput in = read(env, properties);
  View<float> arrays[3];
  const std::size_t n = in.queries * in.heads * in.dim, m = in.keys * in.keyHeads * in.dim;
  for (int i = 0; i < 3; ++i) {
    arrays[i] = float32(values[i], names[i]);
    requireLength(env, names[i], arrays[i].size, i == 1 ? "queries x heads" : "query_QHD", i == 1 ? in.queries * in.heads : n);
  }
  Napi::Float32Array gradQuery = Napi::Float32Array::New(env, n), gradKey = Napi::Float32Array::New(env, m), gradValue = Napi::Float32Array::New(env, m);
  const TreeAttentionGradient gradient{arrays[0].data, arrays[1].data, arrays[2].data, gradQuery.Data(), gradKey.Data(), gradValue.Data()};
  Napi::Object out = Napi::Object::New(env);
  out.Set("gradQuery_QHD", gradQuery);
  out.Set("gradKey_KJD", gradKey);
  out.Set("gradValue_KJD", gradValue);
  return run(env, out, [=] { return (onCuda ? treeAttentionBackwardCuda : treeAttentionBackwardCpu)(in, gradient); });
}

}  // namespace treeward::node
