// TreewardSwiglu and its gradient: kernels/swiglu on TensorFlow's tensors, without a copy.
#include "kernels/swiglu/swiglu.h"

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

SwigluInput read(const Input& gate, const Input& up) {
  up.requireShape(gate.sizes());
  return {gate.size(), ElementType::float32, gate.data<float>(), up.data<float>()};
}

void forward(void*, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Input gate(context, 0, "gate"), up(context, 1, "up");
    const SwigluInput in = read(gate, up);
    const Output y(context, 0, gate.shape());
    return swigluCpu(in, y.data());
  });
}

void backward(void*, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Input gate(context, 0, "gate"), up(context, 1, "up"), gradY(context, 2, "grad_y");
    const SwigluInput in = read(gate, up);
    gradY.requireShape(gate.sizes());
    const Output gradGate(context, 0, gate.shape()), gradUp(context, 1, gate.shape());
    return swigluBackwardCpu(in, {gradY.data<float>(), gradGate.data(), gradUp.data()});
  });
}

}  // namespace

void defineSwiglu() {
  define({"TreewardSwiglu", {}, {"gate: float", "up: float"}, {"y: float"}, shapesLike<0>, nullptr, forward, nullptr});
  define({"TreewardSwigluGrad",
          {},
          {"gate: float", "up: float", "grad_y: float"},
          {"grad_gate: float", "grad_up: float"},
          shapesLike<0, 0>,
          nullptr,
          backward,
          nullptr});
}

}  // namespace treeward::tensorflow
