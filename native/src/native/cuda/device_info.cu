#include "cuda/device_info.h"

#include "cuda/device.h"

namespace treeward::cuda {

#ifdef __CUDACC__
const DeviceInfo& deviceInfo() {
  static const DeviceInfo info = [] {
    DeviceInfo i{};
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaDeviceProp properties{};
    if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
    if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, 0);
    if (error == cudaSuccess) error = cudaDriverGetVersion(&i.driver);
    if (error == cudaSuccess) error = cudaRuntimeGetVersion(&i.runtime);
    // The first real use: fails where the driver cannot run this build's code.
    if (error == cudaSuccess) error = cudaFree(nullptr);
    if (error != cudaSuccess) {
      i.reason = std::string("CUDA error ") + std::to_string(static_cast<int>(error)) + ", " + cudaGetErrorString(error);
      return i;
    }
    i.available = true;
    i.name = properties.name;
    i.sm = std::to_string(properties.major) + "." + std::to_string(properties.minor);
    i.memory = properties.totalGlobalMem;
    i.multiprocessors = properties.multiProcessorCount;
    return i;
  }();
  return info;
}
#else
const DeviceInfo& deviceInfo() {
  static const DeviceInfo info{true, "", "CUDA on CPU fibers", "0.0", 0, 0, 0, 1};
  return info;
}
#endif

}  // namespace treeward::cuda
