// TreewardSwiglu and its gradient: kernels/swiglu on TensorFlow's tensors, without a copy.
#include "tensorflow/compute.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

SwigluInput read(const Input& gate, const Input& up) {
  up.requireShape(gate.shape());
  return {gate.size(), ElementType::float32, gate.data<float>(), up.data<float>()};
}

struct Forward : Kernel {
  explicit Forward(const Attributes&) {}
  Status run(Call& call) const override {
    const Input gate = call.input(0, "gate"), up = call.input(1, "up");
    const SwigluInput in = read(gate, up);
    return compute(call, in, call.output(0, gate.shape()));
  }
};

struct Backward : Kernel {
  explicit Backward(const Attributes&) {}
  Status run(Call& call) const override {
    const Input gate = call.input(0, "gate"), up = call.input(1, "up"), gradY = call.input(2, "grad_y");
    const SwigluInput in = read(gate, up);
    gradY.requireShape(gate.shape());
    float *gradGate = call.output(0, gate.shape()), *gradUp = call.output(1, gate.shape());
    return compute(call, in, SwigluGradient{gradY.data<float>(), gradGate, gradUp});
  }
};

}  // namespace

void defineSwiglu() {
  define({"TreewardSwiglu", {}, {"gate: float", "up: float"}, {"y: float"}, {}, {{0}}, make<Forward>});
  define({"TreewardSwigluGrad",
          {},
          {"gate: float", "up: float", "grad_y: float"},
          {"grad_gate: float", "grad_up: float"},
          {},
          {{0}, {0}},
          make<Backward>});
}

}  // namespace treeward::tensorflow
