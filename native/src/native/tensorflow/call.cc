#include "tensorflow/call.h"

namespace treeward::tensorflow {
namespace {
std::string text(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}
}  // namespace

std::size_t Input::size() const {
  std::size_t n = 1;
  for (const std::size_t size : shape_) n *= size;
  return n;
}

void Input::requireRank(std::size_t want) const {
  if (rank() == want) return;
  throw Refusal(std::string(name_) + " has the shape " + text(shape_) + ", must have " + std::to_string(want) + " dimensions");
}

void Input::requireShape(const Shape& want) const {
  if (shape_ != want) throw Refusal(std::string(name_) + " has the shape " + text(shape_) + ", must have " + text(want));
}

std::string describe(const Status& status) {
  std::string message = status.name;
  if (status.fault == Fault::value || status.fault == Fault::cycle) message += "[" + std::to_string(status.index) + "]";
  return message + " " + status.rule;
}

}  // namespace treeward::tensorflow
