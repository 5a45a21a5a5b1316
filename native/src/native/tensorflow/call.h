// One execution of an operator through TensorFlow's C kernel API: inputs with their shapes, outputs, refusals. Everything that
// goes wrong inside `execute` becomes a TF_Status, which tfjs throws as an Error; nothing ends the process.
#pragma once
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/tf_status.h>
#include <tensorflow/c/tf_tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/status.h"

namespace treeward::tensorflow {

struct StatusDeleter {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
};
using StatusPointer = std::unique_ptr<TF_Status, StatusDeleter>;

// An argument that cannot be computed with.
struct Refusal : std::runtime_error {
  TF_Code code;
  Refusal(TF_Code c, const std::string& message) : std::runtime_error(message), code(c) {}
};

// Throws what TensorFlow itself reports.
void check(const TF_Status* status);

struct TensorDeleter {
  void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
};

class Input {
 public:
  Input(TF_OpKernelContext* context, int index, const char* name);
  const char* name() const { return name_; }
  std::size_t rank() const { return static_cast<std::size_t>(TF_NumDims(tensor_.get())); }
  std::size_t dim(std::size_t axis) const { return static_cast<std::size_t>(TF_Dim(tensor_.get(), static_cast<int>(axis))); }
  std::size_t size() const { return static_cast<std::size_t>(TF_TensorElementCount(tensor_.get())); }
  // The operator's definition fixes every type, so TensorFlow has checked it.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(TF_TensorData(tensor_.get()));
  }
  // @throws Refusal unless the tensor has exactly these sizes
  void requireShape(const std::vector<std::size_t>& want) const;
  void requireRank(std::size_t want) const;
  std::vector<std::int64_t> shape() const;
  std::vector<std::size_t> sizes() const;
  std::string shapeText() const;

 private:
  const char* name_;
  std::unique_ptr<TF_Tensor, TensorDeleter> tensor_;
};

// Holds an output until the operator ends.
class Output {
 public:
  Output(TF_OpKernelContext* context, int index, const std::vector<std::int64_t>& shape);
  float* data() const { return static_cast<float*>(TF_TensorData(tensor_.get())); }

 private:
  std::unique_ptr<TF_Tensor, TensorDeleter> tensor_;
};

// Runs `work` and hands a refusal, a failed status or any exception to TensorFlow.
void execute(TF_OpKernelContext* context, const std::function<Status()>& work);

}  // namespace treeward::tensorflow
