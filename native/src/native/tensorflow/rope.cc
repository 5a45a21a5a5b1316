// TreewardRope: kernels/rope on TensorFlow's tensors, without a copy. Its gradient is itself with `inverse`.
#include "tensorflow/compute.h"
#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct Rope : Kernel {
  const bool inverse, interleaved;

  explicit Rope(const Attributes& a) : inverse(a.flag("inverse")), interleaved(a.flag("interleaved")) {}
  Status run(Call& call) const override {
    const Input x = call.input(0, "x"), position = call.input(1, "position"), cos = call.input(2, "cos"), sin = call.input(3, "sin");
    x.requireRank(3);
    cos.requireRank(2);
    position.requireShape({x.dim(0)});
    sin.requireShape(cos.shape());
    const RopeInput in{x.dim(0), x.dim(1), x.dim(2), cos.dim(1), cos.dim(0), interleaved ? RopePairs::interleaved : RopePairs::half,
                       inverse, ElementType::float32, x.data<float>(), position.data<std::int32_t>(), cos.data<float>(), sin.data<float>()};
    return compute(call, in, call.output(0, x.shape()));
  }
};

}  // namespace

void defineRope() {
  define({"TreewardRope",
          {"inverse: bool", "interleaved: bool"},
          {"x: float", "position: int32", "cos: float", "sin: float"},
          {"y: float"},
          {"position"},
          {{0}},
          make<Rope>});
}

}  // namespace treeward::tensorflow
