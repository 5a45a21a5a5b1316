// TreewardRmsNorm and its gradient: kernels/rms_norm on TensorFlow's tensors, without a copy. Rows are all axes but the last.
#include "tensorflow/compute.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

// The optional inputs, which come last.
struct Optional {
  bool adds, gains;

  explicit Optional(const Attributes& a) : adds(given(a, "A", "addend")), gains(given(a, "G", "gain")) {}
  static bool given(const Attributes& a, const char* attribute, const char* name) {
    const int count = a.integer(attribute);
    if (count > 1) throw Refusal(std::string(name) + " must hold one tensor, or nothing");
    return count == 1;
  }
  std::vector<Input> read(Call& call, int first) const {
    std::vector<Input> inputs;
    if (adds) inputs.push_back(call.input(first, "addend"));
    if (gains) inputs.push_back(call.input(first + adds, "gain"));
    return inputs;
  }
};

// x and the gain, if there is one.
RmsNormInput read(const Input& x, const Input* gain, float eps) {
  if (x.rank() < 1) throw Refusal("x must have at least one dimension");
  const std::size_t width = x.dim(x.rank() - 1), rows = width ? x.size() / width : 0;
  std::size_t gains = 1;
  if (gain) {
    gain->requireRank(2);
    gains = gain->dim(0);
    gain->requireShape({gains, width});
  }
  return {rows, width, gains, ElementType::float32, x.data<float>(), nullptr, gain ? gain->data<float>() : nullptr, eps};
}

Shape rowsOf(const Input& x) { return {x.shape().begin(), x.shape().end() - 1}; }

struct Forward : Kernel {
  const Optional optional;
  const float eps;

  explicit Forward(const Attributes& a) : optional(a), eps(a.number("eps")) {}
  Status run(Call& call) const override {
    const Input x = call.input(0, "x");
    const std::vector<Input> more = optional.read(call, 1);
    RmsNormInput in = read(x, optional.gains ? &more.back() : nullptr, eps);
    if (optional.adds) {
      more[0].requireShape(x.shape());
      in.addend_RD = more[0].data<float>();
    }
    float *y = call.output(0, x.shape()), *scale = call.output(1, rowsOf(x)), *sum = call.output(2, optional.adds ? x.shape() : Shape{0});
    return compute(call, in, RmsNormOutput{optional.adds ? sum : nullptr, y, scale});
  }
};

struct Backward : Kernel {
  const Optional optional;
  const bool normalised;

  explicit Backward(const Attributes& a) : optional(a), normalised(a.flag("normalised")) {}
  Status run(Call& call) const override {
    const Input x = call.input(0, "x"), scale = call.input(1, "scale"), gradY = call.input(2, "grad_y");
    const std::vector<Input> more = optional.read(call, 3);
    const RmsNormInput in = read(x, optional.gains ? &more.back() : nullptr, 0.0f);
    gradY.requireShape(x.shape());
    if (optional.adds) more[0].requireShape(x.shape());
    scale.requireShape(rowsOf(x));
    float *gradX = call.output(0, x.shape()), *gradGain = call.output(1, optional.gains ? more.back().shape() : Shape{0, 0});
    return compute(call, in,
                   RmsNormGradient{scale.data<float>(), gradY.data<float>(), optional.adds ? more[0].data<float>() : nullptr, normalised, gradX,
                                   optional.gains ? gradGain : nullptr});
  }
};

}  // namespace

void defineRmsNorm() {
  define({"TreewardRmsNorm",
          {"eps: float", "A: int >= 0", "G: int >= 0"},
          {"x: float", "addend: A * float", "gain: G * float"},
          {"y: float", "scale: float", "sum: float"},
          {},
          {},
          make<Forward>});
  define({"TreewardRmsNormGrad",
          {"normalised: bool", "A: int >= 0", "G: int >= 0"},
          {"x: float", "scale: float", "grad_y: float", "addend: A * float", "gain: G * float"},
          {"grad_x: float", "grad_gain: float"},
          {},
          {},
          make<Backward>});
}

}  // namespace treeward::tensorflow
