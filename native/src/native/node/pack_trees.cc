#include "kernels/pack_trees/pack_trees.h"

#include <cstring>
#include <memory>

#include "node/arguments.h"
#include "node/call.h"
#include "node/operators.h"

namespace treeward::node {
namespace {

template <class Array, class Element>
void set(Napi::Object& out, const char* name, const std::vector<Element>& values) {
  Array array = Array::New(out.Env(), values.size());
  if (!values.empty()) std::memcpy(array.Data(), values.data(), values.size() * sizeof(Element));
  out.Set(name, array);
}

}  // namespace

Napi::Value packTrees(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs");
  const char* names[] = {"tokens_T", "start_B", "end_B", "parent_B"};
  Napi::Value values[4];
  for (int i = 0; i < 4; ++i) values[i] = inputs.Get(names[i]);
  const Napi::Value weights = inputs.Get("weight_T");
  View<std::int32_t> x[4];
  for (int i = 0; i < 4; ++i) x[i] = int32(values[i], names[i]);
  for (int i = 2; i < 4; ++i) requireLength(env, names[i], x[i].size, "start_B", x[1].size);
  const View<float> weight = optionalFloat32(weights, "weight_T");
  const bool weighted = !weights.IsUndefined();
  if (weighted) requireLength(env, "weight_T", weight.size, "tokens_T", x[0].size);
  const PackTreesInput in{x[0].size, x[1].size, x[0].data, x[1].data, x[2].data, x[3].data, weighted ? weight.data : nullptr};
  const auto forest = std::make_shared<Forest>();
  return run(env, Napi::Object::New(env), [=] { return treeward::packTrees(in, forest.get()); }, [=](Napi::Object out) {
    set<Napi::Int32Array>(out, "position_T", forest->position_T);
    set<Napi::Int32Array>(out, "tokens_F", forest->tokens_F);
    set<Napi::Int32Array>(out, "parent_F", forest->parent_F);
    set<Napi::Int32Array>(out, "end_F", forest->end_F);
    set<Napi::Int32Array>(out, "depth_F", forest->depth_F);
    set<Napi::Int32Array>(out, "owned_F", forest->owned_F);
    set<Napi::Float32Array>(out, "weight_F", forest->weight_F);
  });
}

Napi::Value cutForest(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object inputs = object(info, 0, "inputs"), given = object(info, 1, "options");
  const double budget = number(given, "tokenBudget");
  if (!(budget >= 1)) throw fail(env, "NATIVE_E_OPTION", "tokenBudget must be >= 1");
  const auto oversize = static_cast<Oversize>(choice(given, "oversize", {"widen", "alone", "refuse"}));
  const char* names[] = {"parent_F", "end_F", "predictor_M"};
  Napi::Value values[3];
  for (int i = 0; i < 3; ++i) values[i] = inputs.Get(names[i]);
  const Napi::Value groups = inputs.Get("group_M");
  View<std::int32_t> x[3];
  for (int i = 0; i < 3; ++i) x[i] = int32(values[i], names[i]);
  requireLength(env, "end_F", x[1].size, "parent_F", x[0].size);
  const View<std::int32_t> group = optionalInt32(groups, "group_M");
  const bool grouped = !groups.IsUndefined();
  if (grouped) requireLength(env, "group_M", group.size, "predictor_M", x[2].size);
  const std::size_t most = budget < 1e15 ? static_cast<std::size_t>(budget) : static_cast<std::size_t>(1e15);
  const CutForestInput in{x[0].size, x[2].size, x[0].data, x[1].data, x[2].data, grouped ? group.data : nullptr, most, oversize};
  const auto batches = std::make_shared<MicroBatches>();
  return run(env, Napi::Object::New(env), [=] { return treeward::cutForest(in, batches.get()); }, [=](Napi::Object out) {
    set<Napi::Int32Array>(out, "scoredOffset_U1", batches->scoredOffset_U1);
    set<Napi::Int32Array>(out, "order_M", batches->order_M);
    set<Napi::Int32Array>(out, "predictor_M", batches->predictor_M);
    set<Napi::Int32Array>(out, "tokenOffset_U1", batches->tokenOffset_U1);
    set<Napi::Int32Array>(out, "forest_N", batches->forest_N);
    set<Napi::Int32Array>(out, "parent_N", batches->parent_N);
    set<Napi::Int32Array>(out, "end_N", batches->end_N);
  });
}

}  // namespace treeward::node
