#include "tensorflow_gpu/call.h"

#include "tensorflow_gpu/device.h"

namespace treeward::tensorflow {

void check(const absl::Status& status) {
  if (!status.ok()) throw Failure(status);
}

DeviceCall::DeviceCall(::tensorflow::OpKernelContext* context) : context_(context), stream_(kDevice.stream(context)) {}

Input DeviceCall::input(int index, const char* name) {
  const ::tensorflow::Tensor& tensor = context_->input(index);
  Shape shape;
  for (const auto dim : tensor.shape()) shape.push_back(static_cast<std::size_t>(dim.size));
  return {name, std::move(shape), tensor.data()};
}

float* DeviceCall::output(int index, const Shape& shape) {
  ::tensorflow::TensorShape dims;
  for (const std::size_t n : shape) dims.AddDim(static_cast<std::int64_t>(n));
  ::tensorflow::Tensor* tensor = nullptr;
  check(context_->allocate_output(index, dims, &tensor));
  return static_cast<float*>(tensor->data());
}

void* DeviceCall::workspace(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  check(context_->allocate_temp(::tensorflow::DT_INT8, {static_cast<std::int64_t>(bytes)}, &temporary_.emplace_back()));
  return temporary_.back().data();
}

const void* DeviceCall::uploadBytes(const void* host, std::size_t bytes) {
  void* to = workspace(bytes);
  if (bytes) kDevice.copy(context_, to, host, bytes);
  return to;
}

}  // namespace treeward::tensorflow
