// The call of an operator through TensorFlow's own C++ interface, which is the one that knows the stream of its GPU.
#pragma once
#include <tensorflow/core/framework/op_kernel.h>

#include <vector>

#include "tensorflow/call.h"

namespace treeward::tensorflow {

// What TensorFlow itself reports.
struct Failure : std::runtime_error {
  absl::Status status;
  explicit Failure(const absl::Status& s) : std::runtime_error(std::string(s.message())), status(s) {}
};

// @throws Failure
void check(const absl::Status& status);

class DeviceCall : public Call {
 public:
  explicit DeviceCall(::tensorflow::OpKernelContext* context);
  int inputs() const override { return context_->num_inputs(); }
  Input input(int index, const char* name) override;
  float* output(int index, const Shape& shape) override;

  // The CUDA stream that TensorFlow runs this operator on.
  void* stream() const { return stream_; }
  // Device memory for the work that this call puts on its stream; TensorFlow's, so that its allocator knows.
  void* workspace(std::size_t bytes);
  // A copy of what lies in the host's memory, in the order of the stream; null for null.
  template <class T>
  const T* upload(const T* host, std::size_t count) {
    return host ? static_cast<const T*>(uploadBytes(host, count * sizeof(T))) : nullptr;
  }

 private:
  const void* uploadBytes(const void* host, std::size_t bytes);

  ::tensorflow::OpKernelContext* context_;
  void* stream_;
  std::vector<::tensorflow::Tensor> temporary_;
};

}  // namespace treeward::tensorflow
