// The JavaScript side of each operator: (inputs, options, backend?, into?) => results. `into` names arrays for results, where an
// operator takes it (node/outputs.h).
#pragma once
#include <napi.h>

namespace treeward::node {

Napi::Value policyLoss(const Napi::CallbackInfo& info);
Napi::Value valueLoss(const Napi::CallbackInfo& info);
Napi::Value causalGae(const Napi::CallbackInfo& info);
Napi::Value linearLogprob(const Napi::CallbackInfo& info);
Napi::Value linearLogprobBackward(const Napi::CallbackInfo& info);
Napi::Value treeAttention(const Napi::CallbackInfo& info);
Napi::Value treeAttentionBackward(const Napi::CallbackInfo& info);
Napi::Value rmsNorm(const Napi::CallbackInfo& info);
Napi::Value rmsNormBackward(const Napi::CallbackInfo& info);
Napi::Value rope(const Napi::CallbackInfo& info);
Napi::Value swiglu(const Napi::CallbackInfo& info);
Napi::Value swigluBackward(const Napi::CallbackInfo& info);
Napi::Value adamw(const Napi::CallbackInfo& info);
Napi::Value packTrees(const Napi::CallbackInfo& info);
Napi::Value cutForest(const Napi::CallbackInfo& info);

}  // namespace treeward::node
