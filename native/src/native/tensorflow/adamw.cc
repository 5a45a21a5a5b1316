// TreewardAdamw: kernels/adamw on TensorFlow's tensors; new tensors, the old ones stay. The coefficients are a tensor rather
// than attributes because they change every step, and TensorFlow keeps a kernel for every set of attributes it has seen.
#include <cstring>

#include "tensorflow/compute.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct Adamw : Kernel {
  explicit Adamw(const Attributes&) {}
  Status run(Call& call) const override {
    const Input param = call.input(0, "param"), grad = call.input(1, "grad"), m = call.input(2, "m"), v = call.input(3, "v");
    const Input numbers = call.input(4, "coefficients");
    for (const Input* input : {&grad, &m, &v}) input->requireShape(param.shape());
    numbers.requireShape({kAdamwCoefficients});
    AdamwCoefficients coefficients;
    std::memcpy(&coefficients, numbers.data<float>(), sizeof coefficients);
    float *newParam = call.output(0, param.shape()), *newM = call.output(1, param.shape()), *newV = call.output(2, param.shape());
    return compute(call, {param.size(), param.data<float>(), grad.data<float>(), m.data<float>(), v.data<float>(), newParam, newM, newV}, coefficients);
  }
};

}  // namespace

void defineAdamw() {
  define({"TreewardAdamw",
          {},
          {"param: float", "grad: float", "m: float", "v: float", "coefficients: float"},
          {"new_param: float", "new_m: float", "new_v: float"},
          {"coefficients"},
          {{0}, {0}, {0}},
          make<Adamw>});
}

}  // namespace treeward::tensorflow
