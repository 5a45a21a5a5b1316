// Which device the kernels are for: gpu.cc, or for tests testing/fibers.cc, where the `.cu` sources run on the CPU.
#pragma once
#include <tensorflow/core/framework/op_kernel.h>

#include <cstddef>

namespace treeward::tensorflow {

struct Device {
  const char* type;   // TensorFlow's name of it
  const char* label;  // what a node's attribute `_kernel` has to be for these kernels; empty: none
  void* (*stream)(::tensorflow::OpKernelContext* context);
  // Copies from the host in the order of the stream; `host` may change as soon as it returns.
  void (*copy)(::tensorflow::OpKernelContext* context, void* to, const void* host, std::size_t bytes);
};

extern const Device kDevice;

}  // namespace treeward::tensorflow
