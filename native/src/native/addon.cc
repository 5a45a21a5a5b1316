// The addon's exports. node/ is the only folder that knows both Node-API and the kernels; it checks types and lengths before
// any pointer is used, so that no argument from JavaScript can crash the process.
#include <napi.h>

#include "common/parallel.h"
#include "cuda/device_info.h"
#include "node/operators.h"

namespace {

// Raised whenever the JavaScript side has to change with the exports. `load-binding.ts` refuses another number.
constexpr int kInterfaceVersion = 4;

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
  exports.Set("interfaceVersion", kInterfaceVersion);
  add("buildInfo", buildInfo);
  add("cudaInfo", cudaInfo);
  add("policyLoss", treeward::node::policyLoss);
  add("valueLoss", treeward::node::valueLoss);
  add("causalGae", treeward::node::causalGae);
  add("linearLogprob", treeward::node::linearLogprob);
  add("linearLogprobBackward", treeward::node::linearLogprobBackward);
  add("treeAttention", treeward::node::treeAttention);
  add("treeAttentionBackward", treeward::node::treeAttentionBackward);
  add("rmsNorm", treeward::node::rmsNorm);
  add("rmsNormBackward", treeward::node::rmsNormBackward);
  add("rope", treeward::node::rope);
  add("swiglu", treeward::node::swiglu);
  add("swigluBackward", treeward::node::swigluBackward);
  add("adamw", treeward::node::adamw);
  return exports;
}

}  // namespace

NODE_API_MODULE(treeward, init)
