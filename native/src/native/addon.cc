// The addon's exports. node/ is the only folder that knows both Node-API and the kernels; it checks types and lengths before
// any pointer is used, so that no argument from JavaScript can crash the process.
#include <napi.h>

#include <string>

#include "common/parallel.h"
#include "cuda/device_info.h"
#include "node/call.h"
#include "node/operators.h"

namespace {

// Raised whenever the JavaScript side has to change with the exports. `load-binding.ts` refuses another number.
constexpr int kInterfaceVersion = 3;

Napi::Value buildInfo(const Napi::CallbackInfo& info) {
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("compiler", __VERSION__);
  out.Set("napi", NAPI_VERSION);
  out.Set("threads", treeward::threadCap());
  return out;
}

// {available: false, reason} or what the device is.
Napi::Value cudaInfo(const Napi::CallbackInfo& info) {
  const treeward::cuda::DeviceInfo& device = treeward::cuda::deviceInfo();
  Napi::Object out = Napi::Object::New(info.Env());
  out.Set("available", device.available);
  if (!device.available) {
    out.Set("reason", device.reason);
    return out;
  }
  out.Set("device", device.name);
  out.Set("sm", device.sm);
  out.Set("driver", device.driver);
  out.Set("cudaRuntime", device.runtime);
  out.Set("memoryBytes", static_cast<double>(device.memory));
  return out;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  // Every operator twice: f, and fAsync behind a promise.
  const auto addOperator = [&](const std::string& name, treeward::node::Operator function) {
    void* data = reinterpret_cast<void*>(function);
    exports.Set(name, Napi::Function::New(env, treeward::node::synchronously, name, data));
    exports.Set(name + "Async", Napi::Function::New(env, treeward::node::asynchronously, name + "Async", data));
  };
  exports.Set("interfaceVersion", kInterfaceVersion);
  add("buildInfo", buildInfo);
  add("cudaInfo", cudaInfo);
  addOperator("policyLoss", treeward::node::policyLoss);
  addOperator("valueLoss", treeward::node::valueLoss);
  addOperator("causalGae", treeward::node::causalGae);
  addOperator("linearLogprob", treeward::node::linearLogprob);
  addOperator("linearLogprobBackward", treeward::node::linearLogprobBackward);
  addOperator("treeAttention", treeward::node::treeAttention);
  addOperator("treeAttentionBackward", treeward::node::treeAttentionBackward);
  addOperator("rmsNorm", treeward::node::rmsNorm);
  addOperator("rmsNormBackward", treeward::node::rmsNormBackward);
  addOperator("rope", treeward::node::rope);
  addOperator("swiglu", treeward::node::swiglu);
  addOperator("swigluBackward", treeward::node::swigluBackward);
  addOperator("adamw", treeward::node::adamw);
  addOperator("packTrees", treeward::node::packTrees);
  addOperator("cutForest", treeward::node::cutForest);
  return exports;
}

}  // namespace

NODE_API_MODULE(treeward, init)
