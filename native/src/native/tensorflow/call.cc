#include "tensorflow/call.h"

#include <new>

namespace treeward::tensorflow {

void check(const TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) throw Refusal(TF_GetCode(status), TF_Message(status));
}

Input::Input(TF_OpKernelContext* context, int index, const char* name) : name_(name) {
  const StatusPointer status(TF_NewStatus());
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, index, &tensor, status.get());
  check(status.get());
  tensor_.reset(tensor);
}

std::vector<std::int64_t> Input::shape() const {
  std::vector<std::int64_t> dims(rank());
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = TF_Dim(tensor_.get(), static_cast<int>(i));
  return dims;
}

std::vector<std::size_t> Input::sizes() const {
  const std::vector<std::int64_t> dims = shape();
  return {dims.begin(), dims.end()};
}

namespace {
template <class Sizes>
std::string text(const Sizes& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}
}  // namespace

std::string Input::shapeText() const { return text(shape()); }

void Input::requireRank(std::size_t want) const {
  if (rank() == want) return;
  throw Refusal(TF_INVALID_ARGUMENT, std::string(name_) + " has the shape " + shapeText() + ", must have " + std::to_string(want) + " dimensions");
}

void Input::requireShape(const std::vector<std::size_t>& want) const {
  bool same = rank() == want.size();
  for (std::size_t i = 0; same && i < want.size(); ++i) same = dim(i) == want[i];
  if (!same) throw Refusal(TF_INVALID_ARGUMENT, std::string(name_) + " has the shape " + shapeText() + ", must have " + text(want));
}

Output::Output(TF_OpKernelContext* context, int index, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = sizeof(float);
  for (const std::int64_t n : shape) bytes *= static_cast<std::size_t>(n);
  const StatusPointer status(TF_NewStatus());
  tensor_.reset(TF_AllocateOutput(context, index, TF_FLOAT, shape.data(), static_cast<int>(shape.size()), bytes, status.get()));
  check(status.get());
}

void execute(TF_OpKernelContext* context, const std::function<Status()>& work) {
  const StatusPointer status(TF_NewStatus());
  try {
    const Status result = work();
    if (result.ok()) return;
    std::string message = result.name;
    if (result.fault == Fault::value || result.fault == Fault::cycle) message += "[" + std::to_string(result.index) + "]";
    TF_SetStatus(status.get(), TF_INVALID_ARGUMENT, (message + " " + result.rule).c_str());
  } catch (const Refusal& refusal) {
    TF_SetStatus(status.get(), refusal.code, refusal.what());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status.get(), TF_RESOURCE_EXHAUSTED, "not enough memory");
  } catch (const std::exception& error) {
    TF_SetStatus(status.get(), TF_INTERNAL, error.what());
  }
  TF_OpKernelContext_Failure(context, status.get());
}

}  // namespace treeward::tensorflow
