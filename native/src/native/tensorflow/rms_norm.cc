// TreewardRmsNorm and its gradient: kernels/rms_norm on TensorFlow's tensors, without a copy. Rows are all axes but the last.
#include "kernels/rms_norm/rms_norm.h"

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct Attributes {
  float eps;
  int adds, gains;        // how many tensors of each optional input come: 0 or 1
  bool normalised;
};

void* create(TF_OpKernelConstruction* c) {
  return new Attributes{floatAttribute(c, "eps"), intAttribute(c, "A"), intAttribute(c, "G"), false};
}
void* createGradient(TF_OpKernelConstruction* c) {
  return new Attributes{0.0f, intAttribute(c, "A"), intAttribute(c, "G"), boolAttribute(c, "normalised")};
}
void destroy(void* attributes) { delete static_cast<Attributes*>(attributes); }

void requireOptional(const char* name, int given) {
  if (given > 1) throw Refusal(TF_INVALID_ARGUMENT, std::string(name) + " must hold one tensor, or nothing");
}

// x and the gain, if there is one.
RmsNormInput read(const Input& x, const Input* gain, float eps) {
  if (x.rank() < 1) throw Refusal(TF_INVALID_ARGUMENT, "x must have at least one dimension");
  const std::size_t width = x.dim(x.rank() - 1), rows = width ? x.size() / width : 0;
  std::size_t gains = 1;
  if (gain) {
    gain->requireRank(2);
    gains = gain->dim(0);
    gain->requireShape({gains, width});
  }
  return {rows, width, gains, ElementType::float32, x.data<float>(), nullptr, gain ? gain->data<float>() : nullptr, eps};
}

std::vector<std::int64_t> rowsOf(const Input& x) {
  std::vector<std::int64_t> shape = x.shape();
  shape.pop_back();
  return shape;
}

void forward(void* pointer, TF_OpKernelContext* context) {
  execute(context, [&] {
    const auto& attributes = *static_cast<const Attributes*>(pointer);
    requireOptional("addend", attributes.adds);
    requireOptional("gain", attributes.gains);
    const Input x(context, 0, "x");
    std::vector<Input> more;
    if (attributes.adds) more.emplace_back(context, 1, "addend");
    if (attributes.gains) more.emplace_back(context, 1 + attributes.adds, "gain");
    RmsNormInput in = read(x, attributes.gains ? &more.back() : nullptr, attributes.eps);
    if (attributes.adds) {
      more[0].requireShape(x.sizes());
      in.addend_RD = more[0].data<float>();
    }
    const Output y(context, 0, x.shape()), scale(context, 1, rowsOf(x)), sum(context, 2, attributes.adds ? x.shape() : std::vector<std::int64_t>{0});
    return rmsNormCpu(in, {attributes.adds ? sum.data() : nullptr, y.data(), scale.data()});
  });
}

void backward(void* pointer, TF_OpKernelContext* context) {
  execute(context, [&] {
    const auto& attributes = *static_cast<const Attributes*>(pointer);
    requireOptional("addend", attributes.adds);
    requireOptional("gain", attributes.gains);
    const Input x(context, 0, "x"), scale(context, 1, "scale"), gradY(context, 2, "grad_y");
    std::vector<Input> more;
    if (attributes.adds) more.emplace_back(context, 3, "addend");
    if (attributes.gains) more.emplace_back(context, 3 + attributes.adds, "gain");
    const RmsNormInput in = read(x, attributes.gains ? &more.back() : nullptr, 0.0f);
    std::vector<std::size_t> rows = x.sizes();
    gradY.requireShape(rows);
    if (attributes.adds) more[0].requireShape(rows);
    rows.pop_back();
    scale.requireShape(rows);
    const Output gradX(context, 0, x.shape()), gradGain(context, 1, attributes.gains ? more.back().shape() : std::vector<std::int64_t>{0, 0});
    return rmsNormBackwardCpu(in, {scale.data<float>(), gradY.data<float>(), attributes.adds ? more[0].data<float>() : nullptr, attributes.normalised,
                                   gradX.data(), attributes.gains ? gradGain.data() : nullptr});
  });
}

}  // namespace

void defineRmsNorm() {
  define({"TreewardRmsNorm",
          {"eps: float", "A: int >= 0", "G: int >= 0"},
          {"x: float", "addend: A * float", "gain: G * float"},
          {"y: float", "scale: float", "sum: float"},
          unknownShapes,
          create,
          forward,
          destroy});
  define({"TreewardRmsNormGrad",
          {"normalised: bool", "A: int >= 0", "G: int >= 0"},
          {"x: float", "scale: float", "grad_y: float", "addend: A * float", "gain: G * float"},
          {"grad_x: float", "grad_gain: float"},
          unknownShapes,
          createGradient,
          backward,
          destroy});
}

}  // namespace treeward::tensorflow
