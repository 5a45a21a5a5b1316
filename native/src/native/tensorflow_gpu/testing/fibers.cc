// The same kernels for TensorFlow's CPU, over the `.cu` sources compiled for fibers, to which host memory is device memory. A node
// asks for them by the attribute `_kernel`, so that they can be compared with the CPU library's in one process.
#include <cstring>

#include "tensorflow_gpu/device.h"

namespace treeward::tensorflow {

const Device kDevice{::tensorflow::DEVICE_CPU, "fibers", [](::tensorflow::OpKernelContext*) -> void* { return nullptr; },
                     [](::tensorflow::OpKernelContext*, void* to, const void* host, std::size_t bytes) { std::memcpy(to, host, bytes); }};

}  // namespace treeward::tensorflow
