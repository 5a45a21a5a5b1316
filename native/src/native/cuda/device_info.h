// Which CUDA device there is, asked once.
#pragma once
#include <cstddef>
#include <string>

namespace treeward::cuda {

struct DeviceInfo {
  bool available;
  std::string reason;  // why not
  std::string name;
  std::string sm;  // "9.0"
  int driver, runtime;  // as CUDA counts: 13000
  std::size_t memory;
  int multiprocessors;
};

// Any error of the runtime (no driver, an old one, no device) means: not available.
const DeviceInfo& deviceInfo();

}  // namespace treeward::cuda
