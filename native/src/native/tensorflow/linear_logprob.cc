// TreewardLinearLogprob and its gradient: kernels/linear_logprob on TensorFlow's tensors, without a copy.
#include "tensorflow/compute.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

// The inputs both directions read. `bias` holds one tensor or none; it comes last.
struct Operands {
  Input hidden, weight, chosen, inverseTemperature;
  std::vector<Input> bias;

  Operands(Call& call, int first)
      : hidden(call.input(0, "hidden")),
        weight(call.input(1, "weight")),
        chosen(call.input(2, "chosen")),
        inverseTemperature(call.input(3, "inverse_temperature")) {
    const int given = call.inputs() - first;
    if (given > 1) throw Refusal("bias must hold one tensor, or nothing");
    if (given == 1) bias.push_back(call.input(first, "bias"));
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

struct Forward : Kernel {
  explicit Forward(const Attributes&) {}
  Status run(Call& call) const override {
    const Operands x(call, 4);
    const LinearLogprobInput in = x.read();
    const Shape& shape = x.chosen.shape();
    float *logp = call.output(0, shape), *entropy = call.output(1, shape), *lse = call.output(2, shape);
    return compute(call, in, LinearLogprobOutput{logp, entropy, lse});
  }
};

struct Backward : Kernel {
  explicit Backward(const Attributes&) {}
  Status run(Call& call) const override {
    const Operands x(call, 8);
    const LinearLogprobInput in = x.read();
    const Input lse = call.input(4, "lse"), entropy = call.input(5, "entropy"), gradLogp = call.input(6, "grad_logp"),
                gradEntropy = call.input(7, "grad_entropy");
    for (const Input* input : {&lse, &entropy, &gradLogp, &gradEntropy}) input->requireShape({in.tokens});
    float *gradHidden = call.output(0, x.hidden.shape()), *gradWeight = call.output(1, x.weight.shape());
    return compute(call, in,
                   LinearLogprobGradient{gradLogp.data<float>(), gradEntropy.data<float>(), lse.data<float>(), entropy.data<float>(), gradHidden, gradWeight});
  }
};

}  // namespace

void defineLinearLogprob() {
  define({"TreewardLinearLogprob",
          {"N: int >= 0"},
          {"hidden: float", "weight: float", "chosen: int32", "inverse_temperature: float", "bias: N * float"},
          {"logp: float", "entropy: float", "lse: float"},
          {"chosen", "inverse_temperature", "bias"},
          {{2}, {2}, {2}},
          make<Forward>});
  define({"TreewardLinearLogprobGrad",
          {"N: int >= 0"},
          {"hidden: float", "weight: float", "chosen: int32", "inverse_temperature: float", "lse: float", "entropy: float", "grad_logp: float",
           "grad_entropy: float", "bias: N * float"},
          {"grad_hidden: float", "grad_weight: float"},
          {"chosen", "inverse_temperature", "bias"},
          {{0}, {1}},
          make<Backward>});
}

}  // namespace treeward::tensorflow
