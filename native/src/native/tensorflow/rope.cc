// TreewardRope: kernels/rope on TensorFlow's tensors, without a copy. Its gradient is itself with `inverse`.
#include "kernels/rope/rope.h"

#include "tensorflow/call.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct Attributes {
  bool inverse, interleaved;
};

void* create(TF_OpKernelConstruction* c) { return new Attributes{boolAttribute(c, "inverse"), boolAttribute(c, "interleaved")}; }
void destroy(void* attributes) { delete static_cast<Attributes*>(attributes); }

void compute(void* pointer, TF_OpKernelContext* context) {
  execute(context, [&] {
    const auto& attributes = *static_cast<const Attributes*>(pointer);
    const Input x(context, 0, "x"), position(context, 1, "position"), cos(context, 2, "cos"), sin(context, 3, "sin");
    x.requireRank(3);
    cos.requireRank(2);
    position.requireShape({x.dim(0)});
    sin.requireShape(cos.sizes());
    const RopeInput in{x.dim(0), x.dim(1), x.dim(2), cos.dim(1), cos.dim(0), attributes.interleaved ? RopePairs::interleaved : RopePairs::half,
                       attributes.inverse, ElementType::float32, x.data<float>(), position.data<std::int32_t>(), cos.data<float>(), sin.data<float>()};
    const Output y(context, 0, x.shape());
    return ropeCpu(in, y.data());
  });
}

}  // namespace

void defineRope() {
  define({"TreewardRope",
          {"inverse: bool", "interleaved: bool"},
          {"x: float", "position: int32", "cos: float", "sin: float"},
          {"y: float"},
          shapesLike<0>,
          create,
          compute,
          destroy});
}

}  // namespace treeward::tensorflow
