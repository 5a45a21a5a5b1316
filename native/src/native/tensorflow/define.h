// Registering an operator and its kernel.
#pragma once
#include <initializer_list>
#include <memory>

#include "tensorflow/call.h"

namespace treeward::tensorflow {

// An operator with certain attributes.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status run(Call& call) const = 0;
};

template <class K>
std::unique_ptr<Kernel> make(const Attributes& attributes) {
  return std::make_unique<K>(attributes);
}

// The shape of an input, or its first `rank` dimensions.
struct LikeInput {
  int index;
  int rank = -1;
};

struct Definition {
  const char* name;
  std::initializer_list<const char*> attributes;  // "scale: float"
  std::initializer_list<const char*> inputs;      // "query: float"
  std::initializer_list<const char*> outputs;
  // Names of inputs whose values are checked or read before the kernel starts: they lie in the host's memory, on any device.
  std::initializer_list<const char*> hostInputs;
  std::initializer_list<LikeInput> shapes;  // of the outputs; empty where they depend on which optional inputs come
  std::unique_ptr<Kernel> (*make)(const Attributes&);
};

// c_api/define.cc: the operator, and its kernel for the CPU. tensorflow_gpu/define.cc: another kernel for that operator.
//
// @throws std::exception with TensorFlow's reason
void define(const Definition& definition);

// All operators of this library.
void defineOperators();

// The operators, one function per file.
void defineTreeAttention();
void defineLinearLogprob();
void defineMatMul();
void defineRmsNorm();
void defineRope();
void defineSwiglu();
void defineAdamw();

}  // namespace treeward::tensorflow
