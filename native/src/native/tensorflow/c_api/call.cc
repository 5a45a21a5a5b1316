#include "tensorflow/c_api/call.h"

namespace treeward::tensorflow {

void check(const TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) throw Failure(status);
}

Input CpuCall::input(int index, const char* name) {
  const StatusPointer status(TF_NewStatus());
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context_, index, &tensor, status.get());
  check(status.get());
  tensors_.emplace_back(tensor);
  Shape shape(static_cast<std::size_t>(TF_NumDims(tensor)));
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = static_cast<std::size_t>(TF_Dim(tensor, static_cast<int>(i)));
  return {name, std::move(shape), TF_TensorData(tensor)};
}

float* CpuCall::output(int index, const Shape& shape) {
  const std::vector<std::int64_t> dims(shape.begin(), shape.end());
  std::size_t bytes = sizeof(float);
  for (const std::size_t n : shape) bytes *= n;
  const StatusPointer status(TF_NewStatus());
  tensors_.emplace_back(TF_AllocateOutput(context_, index, TF_FLOAT, dims.data(), static_cast<int>(dims.size()), bytes, status.get()));
  check(status.get());
  return static_cast<float*>(TF_TensorData(tensors_.back().get()));
}

}  // namespace treeward::tensorflow
