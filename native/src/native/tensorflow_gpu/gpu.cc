#include <tensorflow/core/framework/device_base.h>
#include <xla/stream_executor/stream.h>

#include <cstring>
#include <vector>

#include "tensorflow_gpu/call.h"
#include "tensorflow_gpu/device.h"

namespace treeward::tensorflow {
namespace {

stream_executor::Stream& streamOf(::tensorflow::OpKernelContext* context) {
  ::tensorflow::DeviceContext* device = context->op_device_context();
  if (!device || !device->stream()) throw std::runtime_error("TensorFlow runs the kernel for the GPU without a stream");
  return *device->stream();
}

void* cudaStream(::tensorflow::OpKernelContext* context) { return streamOf(context).platform_specific_handle().stream; }

void copy(::tensorflow::OpKernelContext* context, void* to, const void* host, std::size_t bytes) {
  // TensorFlow's buffer may be pinned memory, which the copy reads later, when another operator may own it. What is not pinned
  // CUDA has read when it returns.
  std::vector<unsigned char> pageable(bytes);
  std::memcpy(pageable.data(), host, bytes);
  stream_executor::DeviceMemoryBase place(to, bytes);
  check(streamOf(context).Memcpy(&place, pageable.data(), bytes));
}

}  // namespace

const Device kDevice{::tensorflow::DEVICE_GPU, "", cudaStream, copy};

}  // namespace treeward::tensorflow
