// TreewardLinearLogprob and its gradient: kernels/linear_logprob on TensorFlow's tensors, without a copy.
#include "kernels/linear_logprob/linear_logprob.h"

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

// The inputs both directions read. `bias` holds one tensor or none; it comes last.
struct Operands {
  Input hidden, weight, chosen, inverseTemperature;
  std::vector<Input> bias;

  Operands(TF_OpKernelContext* context, int first)
      : hidden(context, 0, "hidden"), weight(context, 1, "weight"), chosen(context, 2, "chosen"), inverseTemperature(context, 3, "inverse_temperature") {
    const int given = TF_NumInputs(context) - first;
    if (given > 1) throw Refusal(TF_INVALID_ARGUMENT, "bias must hold one tensor, or nothing");
    if (given == 1) bias.emplace_back(context, first, "bias");
  }

  LinearLogprobInput read() const {
    hidden.requireRank(2);
    weight.requireRank(2);
    const std::size_t tokens = hidden.dim(0), size = hidden.dim(1), vocabulary = weight.dim(0);
    weight.requireShape({vocabulary, size});
    chosen.requireShape({tokens});
    inverseTemperature.requireShape({tokens});
    if (!bias.empty()) bias[0].requireShape({vocabulary});
    return {tokens,
            size,
            vocabulary,
            ElementType::float32,
            hidden.data<float>(),
            weight.data<float>(),
            bias.empty() ? nullptr : bias[0].data<float>(),
            chosen.data<std::int32_t>(),
            inverseTemperature.data<float>()};
  }
};

void forward(void*, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Operands x(context, 4);
    const LinearLogprobInput in = x.read();
    const std::vector<std::int64_t> shape = x.chosen.shape();
    const Output logp(context, 0, shape), entropy(context, 1, shape), lse(context, 2, shape);
    return linearLogprobCpu(in, {logp.data(), entropy.data(), lse.data()});
  });
}

void backward(void*, TF_OpKernelContext* context) {
  execute(context, [&] {
    const Operands x(context, 8);
    const LinearLogprobInput in = x.read();
    const Input lse(context, 4, "lse"), entropy(context, 5, "entropy"), gradLogp(context, 6, "grad_logp"), gradEntropy(context, 7, "grad_entropy");
    for (const Input* input : {&lse, &entropy, &gradLogp, &gradEntropy}) input->requireShape({in.tokens});
    const Output gradHidden(context, 0, x.hidden.shape()), gradWeight(context, 1, x.weight.shape());
    return linearLogprobBackwardCpu(in, {gradLogp.data<float>(), gradEntropy.data<float>(), lse.data<float>(), entropy.data<float>(), gradHidden.data(),
                                         gradWeight.data()});
  });
}

}  // namespace

void defineLinearLogprob() {
  define({"TreewardLinearLogprob",
          {"N: int >= 0"},
          {"hidden: float", "weight: float", "chosen: int32", "inverse_temperature: float", "bias: N * float"},
          {"logp: float", "entropy: float", "lse: float"},
          shapesLike<2, 2, 2>,
          nullptr,
          forward,
          nullptr});
  define({"TreewardLinearLogprobGrad",
          {"N: int >= 0"},
          {"hidden: float", "weight: float", "chosen: int32", "inverse_temperature: float", "lse: float", "entropy: float", "grad_logp: float",
           "grad_entropy: float", "bias: N * float"},
          {"grad_hidden: float", "grad_weight: float"},
          shapesLike<0, 1>,
          nullptr,
          backward,
          nullptr});
}

}  // namespace treeward::tensorflow
