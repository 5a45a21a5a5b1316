// TreewardAdamw: kernels/adamw on TensorFlow's tensors; new tensors, the old ones stay. The coefficients are a tensor rather
// than attributes because they change every step, and TensorFlow keeps a kernel for every set of attributes it has seen.
#include "kernels/adamw/adamw.h"

#include <cstring>

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

void compute(void*, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Input param(context, 0, "param"), grad(context, 1, "grad"), m(context, 2, "m"), v(context, 3, "v"), numbers(context, 4, "coefficients");
    for (const Input* input : {&grad, &m, &v}) input->requireShape(param.sizes());
    numbers.requireShape({kAdamwCoefficients});
    AdamwCoefficients coefficients;
    std::memcpy(&coefficients, numbers.data<float>(), sizeof coefficients);
    const Output newParam(context, 0, param.shape()), newM(context, 1, param.shape()), newV(context, 2, param.shape());
    return adamwCpu({param.size(), param.data<float>(), grad.data<float>(), m.data<float>(), v.data<float>(), newParam.data(), newM.data(), newV.data()},
                    coefficients);
  });
}

}  // namespace

void defineAdamw() {
  define({"TreewardAdamw",
          {},
          {"param: float", "grad: float", "m: float", "v: float", "coefficients: float"},
          {"new_param: float", "new_m: float", "new_v: float"},
          shapesLike<0, 0, 0>,
          nullptr,
          compute,
          nullptr});
}

}  // namespace treeward::tensorflow
