// TreewardMatMul: TensorFlow's MatMul of float32, by common/matrix_product. TensorFlow's own takes up to twice the time where an
// operand is transposed, as in every gradient of a weight. For the CPU only: a GPU's own library multiplies matrices better.
#include "common/matrix_product.h"

#include "tensorflow/define.h"

namespace treeward::tensorflow {
namespace {

struct MatMul : Kernel {
  const bool transposeA, transposeB;

  explicit MatMul(const Attributes& attributes) : transposeA(attributes.flag("transpose_a")), transposeB(attributes.flag("transpose_b")) {}
  Status run(Call& call) const override {
    const Input a = call.input(0, "a"), b = call.input(1, "b");
    a.requireRank(2);
    b.requireRank(2);
    const std::size_t m = a.dim(transposeA ? 1 : 0), k = a.dim(transposeA ? 0 : 1), n = b.dim(transposeB ? 0 : 1);
    b.requireShape(transposeB ? Shape{n, k} : Shape{k, n});
    multiply(transposeA ? Layout::transposed : Layout::plain, transposeB ? Layout::transposed : Layout::plain, m, n, k, a.data<float>(), b.data<float>(),
             call.output(0, {m, n}));
    return {};
  }
};

}  // namespace

void defineMatMul() {
  define({"TreewardMatMul", {"transpose_a: bool", "transpose_b: bool"}, {"a: float", "b: float"}, {"c: float"}, {}, {}, make<MatMul>});
}

}  // namespace treeward::tensorflow
