// The call of an operator through TensorFlow's C kernel API.
#pragma once
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/tf_status.h>
#include <tensorflow/c/tf_tensor.h>

#include <memory>

#include "tensorflow/call.h"

namespace treeward::tensorflow {

struct StatusDeleter {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
};
using StatusPointer = std::unique_ptr<TF_Status, StatusDeleter>;

// What TensorFlow itself reports.
struct Failure : std::runtime_error {
  TF_Code code;
  explicit Failure(const TF_Status* status) : std::runtime_error(TF_Message(status)), code(TF_GetCode(status)) {}
};

// @throws Failure
void check(const TF_Status* status);

class CpuCall : public Call {
 public:
  explicit CpuCall(TF_OpKernelContext* context) : context_(context) {}
  int inputs() const override { return TF_NumInputs(context_); }
  Input input(int index, const char* name) override;
  float* output(int index, const Shape& shape) override;

 private:
  struct TensorDeleter {
    void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
  };
  TF_OpKernelContext* context_;
  std::vector<std::unique_ptr<TF_Tensor, TensorDeleter>> tensors_;
};

}  // namespace treeward::tensorflow
