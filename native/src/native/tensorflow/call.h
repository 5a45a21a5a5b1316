// One execution of an operator, whichever of TensorFlow's interfaces it came through: c_api/ (CPU) or tensorflow_gpu/. Operators
// see no TensorFlow type, so that both are built from the same sources, and refuse the same arguments in the same words.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/status.h"

namespace treeward::tensorflow {

using Shape = std::vector<std::size_t>;

// An argument that cannot be computed with.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Input {
 public:
  Input(const char* name, Shape shape, const void* data) : name_(name), shape_(std::move(shape)), data_(data) {}
  const Shape& shape() const { return shape_; }
  std::size_t rank() const { return shape_.size(); }
  std::size_t dim(std::size_t axis) const { return shape_[axis]; }
  std::size_t size() const;
  // In the device's memory, or the host's for those that the operator's definition names. The definition fixes every type, so
  // TensorFlow has checked it.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  // @throws Refusal unless the tensor has exactly these sizes
  void requireShape(const Shape& want) const;
  void requireRank(std::size_t want) const;

 private:
  const char* name_;
  Shape shape_;
  const void* data_;
};

// Pointers to inputs and outputs are good until the call ends.
class Call {
 public:
  virtual int inputs() const = 0;
  virtual Input input(int index, const char* name) = 0;
  virtual float* output(int index, const Shape& shape) = 0;

 protected:
  ~Call() = default;
};

// What was wrong, in one line.
std::string describe(const Status& status);

// An operator's attributes, when its kernel is made.
class Attributes {
 public:
  virtual float number(const char* name) const = 0;
  virtual int integer(const char* name) const = 0;
  virtual bool flag(const char* name) const = 0;

 protected:
  ~Attributes() = default;
};

}  // namespace treeward::tensorflow
