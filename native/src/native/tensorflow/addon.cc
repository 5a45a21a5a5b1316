// Loading this file registers Treeward's operators with the TensorFlow of the process (tfjs-node's: load that first, so that
// its library is the one that is found); as part of the GPU library, their kernels for the GPU. Exports `threads`, what an
// operator uses at most of the CPU. Registration happens once per process, also when worker threads load the file again; when it
// failed every load throws the reason.
#include <node_api.h>

#include <mutex>
#include <string>

#include "common/parallel.h"
#include "tensorflow/define.h"

namespace {

const std::string& registration() {
  static std::string failure;
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      treeward::tensorflow::defineOperators();
    } catch (const std::exception& error) {
      failure = error.what();
    }
  });
  return failure;
}

}  // namespace

NAPI_MODULE_INIT() {
  const std::string& failure = registration();
  if (!failure.empty()) {
    napi_throw_error(env, "NATIVE_E_LOAD", ("TensorFlow refuses an operator: " + failure).c_str());
    return nullptr;
  }
  napi_value threads;
  if (napi_create_uint32(env, treeward::threadCap(), &threads) != napi_ok || napi_set_named_property(env, exports, "threads", threads) != napi_ok) return nullptr;
  return exports;
}
